"""A run with a league: which pairs play, what the table has, how it steers the draw, resuming to the same bits."""

import json
import shutil

import pytest

from tests.games.cases.werewolf import dealt
from tests.learn.small_runs import another, make_run
from tests.toy_models import write_random_llama
from tests.trust.test_kill_resume import final_bits, history, numbers
from training.attempts.progress import Progress
from training.attempts.start import reopen
from training.config import RunConfig
from training.errors import BadInput
from training.learn import league, trainer
from training.learn.scenarios import MixtureSampler, ScenarioSampler
from training.opponent_sections import LeagueSection, Opponent
from training.records import LEARNER, Episode, Scenario
from training.rollout.league import read
from training.run_sections import MOST_GAMES
from training.store import dumps, read_lines, read_member

STEPS = 4
OPPONENTS = [{"source": "mirror"}, {"source": "past"}, {"source": "scripted"}]
SECTIONS = {
    "opponents": OPPONENTS,
    "league": {"every": 2, "games": 3},
    "rollout": {"scenarios": 2, "games": 2, "past_saved": 3},
    "learn": {"steps": STEPS, "keep": 1, "save_every": 2},
}


def cells(run_dir, attempt=1):
    return {(cell.step, cell.opponent): cell for cell in read(run_dir.attempt(attempt))}


def events(run_dir, attempt=1):
    return [event for event, _ in read_lines(run_dir.attempt(attempt).events) if event["kind"] == "league"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run with a league, left in peace."""
    config, run_dir = make_run(tmp_path_factory.mktemp("whole"), steps=STEPS, **SECTIONS)
    result = trainer.run(config, run_dir)
    assert result["result"] == "succeeded", result
    return run_dir


def test_every_saved_step_plays_the_earlier_ones_itself_and_the_named_opponents(whole):
    # negotiation is no zero-sum game: what a checkpoint reaches with itself has to be played
    named = {(step, "scripted") for step in (0, 2, 4)}
    past = {(step, f"past {other}") for step in (0, 2, 4) for other in (0, 2, 4)}
    assert set(cells(whole)) == named | past
    assert [event["step"] for event in events(whole)] == [0, 2, 4]
    assert sum(len(event["cells"]) for event in events(whole)) == len(named | past)
    assert {cell.games for cell in cells(whole).values()} == {4}  # three, rounded up to two starts with two seats each
    assert {len(cell.results) for cell in cells(whole).values()} == {2}


def test_a_cell_is_the_mean_of_its_games_which_are_episodes_of_the_step(whole):
    files = whole.attempt(1)
    index = {(line["step"], line["episode"]): line for line, _ in read_lines(files.index)}
    for cell in cells(whole).values():
        sums = {}
        for number in range(cell.first, cell.first + cell.games):
            line = index[cell.after, number]
            assert number >= MOST_GAMES
            record = read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])
            episode = Episode.from_dict(record["episode"])
            side = "a" if line["summary"]["league"]["step"] == cell.step else "b"
            if cell.opponent == f"past {cell.step}":
                side = "a"
            [seat] = record["seats"][side]
            key = (episode.scenario.id, episode.scenario.seed)
            sums.setdefault(key, []).append(episode.returns[seat])
            policies = {trace.seat: trace.policy for trace in episode.traces}
            expected = LEARNER if cell.step == cell.after else f"past {cell.step}"
            assert policies.get(seat, expected) == expected
        assert cell.results == pytest.approx([sum(values) / len(values) for values in sums.values()])
    assert {line["file"] for (_, number), line in index.items() if number >= MOST_GAMES} == {
        f"step_{step:06d}_league.jsonl.gz" for step in (0, 2, 4)
    }


def test_the_games_of_two_checkpoints_count_for_both(whole):
    for (step, opponent), cell in cells(whole).items():
        if opponent.startswith("past") and opponent != f"past {step}":
            other = cells(whole)[int(opponent.split()[1]), f"past {step}"]
            assert (other.results, other.others, other.first) == (cell.others, cell.results, cell.first)


def test_all_pairs_play_the_same_starts(whole):
    starts = {}
    for line, _ in read_lines(whole.attempt(1).index):
        if line["episode"] >= MOST_GAMES:
            file = whole.attempt(1).root / "episodes" / line["file"]
            record = read_member(file, line["offset"], line["length"])
            scenario = record["episode"]["scenario"]
            pair = (line["step"], line["summary"]["league"]["step"], line["summary"]["league"]["opponent"])
            starts.setdefault(pair, []).append((scenario["id"], scenario["seed"], tuple(record["seats"]["a"])))
    assert len(starts) > 6
    assert len({tuple(played) for played in starts.values()}) == 1


@pytest.mark.parametrize("at", [0, 2])
def test_a_run_stopped_in_an_evaluation_goes_on_to_the_same_bits_and_the_same_table(whole, tmp_path, monkeypatch, at):
    parts = another(whole, tmp_path)
    beat = Progress.beat

    def stop(self, **facts):
        beat(self, **facts)
        if self.step == at and self._phase == "evaluating" and parts.attempts() == [1]:
            self.stop("asked by a test")

    monkeypatch.setattr(Progress, "beat", stop)
    assert trainer.run(reopen(parts), parts)["step"] == at
    assert events(parts) == [] if at == 0 else len(events(parts)) == 1
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert [numbers(line) for line in history(parts)] == [numbers(line) for line in history(whole)]
    assert final_bits(parts) == final_bits(whole)
    assert cells(parts, 2) == cells(whole)


def test_a_run_stopped_after_an_evaluation_takes_its_results_from_the_attempt_that_played_it(whole, tmp_path):
    parts = another(whole, tmp_path)

    async def stop_after_two(running, step):
        if parts.attempts() == [1]:
            parts.attempt(1).ask("stop")
        return {}

    first = reopen(parts)
    watched = first.model_copy(update={"evaluate": first.evaluate.model_copy(update={"every": 2})})
    assert trainer.run(watched, parts, evaluate=stop_after_two)["step"] == 2
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert [event["step"] for event in events(parts, 2)] == [4]  # the evaluation after step 2 is not played again
    assert final_bits(parts) == final_bits(whole)
    assert cells(parts, 2) == cells(whole)


def test_the_results_steer_the_draw(tmp_path):
    """Against an opponent that is always beaten PFSP plays no game, while another is not."""
    config, run_dir = make_run(tmp_path, steps=STEPS, **{**SECTIONS, "rollout": {"scenarios": 4, "games": 4}})
    planted = []

    async def plant(running, step):
        table = running.context.league.table
        planted.append(step)
        table.add(
            cell.model_copy(update={"results": (cell.high,) if cell.opponent == "scripted" else (cell.low,)})
            for cell in list(table)
        )
        return {}

    watched = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={"every": 2})})
    assert trainer.run(watched, run_dir, evaluate=plant)["result"] == "succeeded"
    assert planted == [2, 4]
    met = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert all("games_against scripted" not in line for line in met[2:])
    assert any("games_against scripted" in line for line in met[:2])
    assert all("games_against past" in line for line in met[2:])


def make_village(root, **sections):
    """A run of one step in a village of six babblers."""
    scenario = Scenario(id="v", game="werewolf", seats=("A", "B", "C", "D", "E", "F"))
    write_random_llama(root / "model", layers=1, window=16384)
    (root / "data.jsonl").write_text(dumps(scenario.to_dict()) + "\n")
    return make_run(
        root,
        steps=1,
        game={"name": "werewolf", "settings": {"day_limit": 1}},
        rollout={"scenarios": 1, "games": 1},
        reward={"malformed": -0.5},
        learn={"steps": 1, "critic_warmup": 0, "tokens_per_batch": 16384},
        **sections,
    )


def test_roles_meet_in_both_directions(tmp_path):
    entry = {"source": "past", "learner": ["werewolf"]}
    config, run_dir = make_village(tmp_path, opponents=[entry], league={"every": 1, "games": 2})
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert set(cells(run_dir)) == {(a, f"past {b}") for a in (0, 1) for b in (0, 1)}
    for cell in cells(run_dir).values():
        assert (cell.learner, cell.games, cell.low, cell.high) == ("werewolf", 2, 0, 1)


def test_roles_that_leave_no_seat_to_an_opponent_are_refused_before_anything_is_written(tmp_path):
    everybody = {"source": "past", "learner": ["werewolf", "villager", "seer", "witch"]}
    config, run_dir = make_village(tmp_path, opponents=[{"source": "mirror"}, everybody], league={"every": 1})
    with pytest.raises(BadInput, match="every seat, so nobody opposes") as caught:
        trainer.run(config, run_dir)
    assert caught.value.where == "opponents.1.learner"
    assert run_dir.attempts() == []


def werewolf_starts(*decks, weight=1.0):
    """A part of a mixture: a start for each deck of roles, and its weight."""
    starts = [dealt(*deck).model_copy(update={"id": f"{weight}-{number}"}) for number, deck in enumerate(decks)]
    return ScenarioSampler(starts, 0, shuffle=True), weight


def mixed(*parts):
    return MixtureSampler(*zip(*parts, strict=True))


SEEN = ("werewolf", "seer", "villager", "villager")
UNSEEN = ("werewolf", "villager", "villager", "villager")


def test_a_rare_role_is_found_at_once(monkeypatch):
    config = RunConfig().model_copy(update={"league": LeagueSection(every=1, games=32)})
    drawn = []
    start = MixtureSampler.start
    monkeypatch.setattr(MixtureSampler, "start", lambda self, place: drawn.append(place) or start(self, place))
    starts = mixed(werewolf_starts(UNSEEN, weight=1e6), werewolf_starts(*[UNSEEN] * 200, SEEN, weight=1e-6))
    seatings = league._seatings(config, starts, Opponent(source="past", learner=("seer",)), "opponents.0.learner")
    assert [seats for _, seats in seatings] == [(1,)] * 32
    assert drawn == list(range(32))


def test_parts_of_a_mixture_keep_the_share_of_their_starts_that_fit():
    """One start of four fits in the first part, all in the second: of weights 4 and 3 they are 1 and 3."""
    config = RunConfig().model_copy(update={"league": LeagueSection(every=1, games=40)})
    starts = mixed(werewolf_starts(SEEN, UNSEEN, UNSEEN, UNSEEN, weight=4), werewolf_starts(SEEN, weight=3))
    seatings = league._seatings(config, starts, Opponent(source="past", learner=("seer",)), "")
    ids = [start.id for start, _ in seatings]
    assert (ids.count("4-0"), ids.count("3-0")) == (10, 30)


def test_a_game_whose_deals_have_no_such_role_is_refused_and_not_searched_for_ever(monkeypatch):
    config = RunConfig().model_copy(update={"league": LeagueSection(every=1, games=2)})
    monkeypatch.setattr(league, "_seats", lambda entry, start: [] if start.seed else [(1,)])  # as it is, not as dealt
    entry = Opponent(source="past", learner=("seer",))
    with pytest.raises(BadInput, match=r"of 200 starts only 0 seat the learner \(seer\)") as caught:
        league._seatings(config, mixed(werewolf_starts(SEEN)), entry, "opponents.0.learner")
    assert caught.value.where == "opponents.0.learner"


def test_opponents_that_the_table_could_not_tell_apart_are_refused(tmp_path):
    config, run_dir = make_run(tmp_path, league={"every": 1}, opponents=[{"source": "past"}])
    copies = [tmp_path / name / "model" for name in ("a", "b")]
    for copy in copies:
        shutil.copytree(config.model.base, copy)
    opponents = tuple(config.opponents[0].model_copy(update={"source": str(copy)}) for copy in copies)
    with pytest.raises(BadInput, match="another opponent is called model as well") as caught:
        trainer.run(config.model_copy(update={"opponents": opponents}), run_dir)
    assert caught.value.where == "opponents.1.source"
    assert run_dir.attempts() == []


def test_the_file_of_the_table_is_whole_json(whole):
    data = json.loads(whole.attempt(1).league.read_text())
    assert data["version"] == 1
    assert len(data["cells"]) == len(cells(whole)) == 12
