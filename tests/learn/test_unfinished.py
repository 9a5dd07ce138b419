"""A run that stops in the middle of a step goes on with the games and the scores that are missing."""

import json

import pytest

from tests.learn.small_runs import another, make_run
from tests.learn.test_judged_run import obliging
from tests.learn.test_phases import episodes
from tests.rewards.samples import dialogue
from tests.stub import Stub
from tests.trust.test_kill_resume import final_bits, history
from training.attempts.start import reopen
from training.learn import playing, trainer, unfinished
from training.learn.unfinished import Unfinished
from training.records import ErrorRecord
from training.rewards import Score
from training.store import dumps, read_lines

SECTIONS = {
    "method": {"name": "epo"},
    "speaker": {"source": "follower:80"},
    "reward": {"process": "rule"},
    "rollout": {"scenarios": 3, "games": 2, "lanes": 2, "keep_unfinished": True},
    "learn": {"kl": "none", "kl_measured": False, "epochs": 2, "save_every": 2},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Three rounds of six games, left in peace."""
    config, run_dir = make_run(tmp_path_factory.mktemp("whole"), steps=3, **SECTIONS)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    return run_dir


def kept(run_dir, attempt):
    """The games and scores that an attempt keeps, by step."""
    folder = run_dir.attempt(attempt).unfinished
    lines = {file.name: [line for line, _ in read_lines(file)] for file in sorted(folder.glob("*"))}
    return {
        name: ([line["game"] for line in rows if "episode" in line], [line["game"] for line in rows if "score" in line])
        for name, rows in lines.items()
    }


def learned(run_dir):
    """What the games were, without the engine's log-probabilities, whose last bits depend on what ran beside them."""
    texts = {step: json.dumps([row["episode"]["turns"] for row in rows]) for step, rows in episodes(run_dir).items()}
    tokens = {
        step: [trace["tokens"] for row in rows for trace in row["episode"]["traces"]]
        for step, rows in episodes(run_dir).items()
    }
    return texts, tokens


def stop_after(monkeypatch, name, counts):
    """Ask the run to stop once so many games of an attempt are kept (`add_episode`) or scored (`add_score`)."""
    counts, seen, run = list(counts), [], {}
    add, open_step = getattr(Unfinished, name), unfinished.open_step

    def opened(run_dir, attempt, step, *rest):
        run["attempt"] = attempt
        return open_step(run_dir, attempt, step, *rest)

    def adding(self, *arguments):
        add(self, *arguments)
        seen.append(1)
        if counts and len(seen) == counts[0]:
            counts.pop(0)
            seen.clear()
            run["attempt"].ask("stop")

    monkeypatch.setattr(unfinished, "open_step", opened)
    monkeypatch.setattr(Unfinished, name, adding)


def test_nothing_is_kept_of_a_step_that_is_saved(whole):
    assert kept(whole, 1) == {}


def test_a_run_that_stops_while_it_plays_goes_on_with_the_other_games(whole, tmp_path, monkeypatch):
    parts = another(whole, tmp_path)
    stop_after(monkeypatch, "add_episode", [2, 2, 4])
    assert trainer.run(reopen(parts), parts)["step"] == 0
    first = kept(parts, 1)["step_000001.jsonl"][0]
    assert 2 <= len(first) < 6
    assert trainer.run(reopen(parts), parts)["step"] == 0
    second = kept(parts, 2)["step_000001.jsonl"][0]
    assert not {*first} & {*second}
    result = trainer.run(reopen(parts), parts)  # plays what is missing, then a part of the second step
    assert (result["result"], result["step"]) == ("stopped", 1)
    assert kept(parts, 1) == kept(parts, 2) == {}  # step 1 was saved when the run stopped in step 2
    assert list(kept(parts, 3)) == ["step_000002.jsonl"]
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert learned(parts) == learned(whole)
    assert final_bits(parts) == final_bits(whole)


def test_games_that_other_weights_may_have_played_are_not_used(whole, tmp_path, monkeypatch):
    """A process that is killed in step 2 has no checkpoint of step 1: step 1 is played again, and so is step 2."""
    parts = another(whole, tmp_path)
    sample = playing.sample

    async def dying(context, progress, jobs, step, games):
        episodes = await sample(context, progress, jobs, step, games)
        if step == 2:
            raise KeyboardInterrupt
        return episodes

    with monkeypatch.context() as killing:
        killing.setattr(playing, "sample", dying)
        with pytest.raises(KeyboardInterrupt):
            trainer.run(reopen(parts), parts)
    assert [len(games) for games, _ in kept(parts, 1).values()] == [6, 6]
    played = []
    add = Unfinished.add_episode
    monkeypatch.setattr(
        Unfinished,
        "add_episode",
        lambda self, game, episode: played.append(self._file.stem) or add(self, game, episode),
    )
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert sorted(played) == ["step_000002"] * 6 + ["step_000003"] * 6  # the start has played step 1, which is used
    assert final_bits(parts) == final_bits(whole)


def test_a_torn_line_is_left_out(whole, tmp_path):
    parts = another(whole, tmp_path)
    episode = unfinished.Episode.from_dict(episodes(whole)[1][0]["episode"])
    file = tmp_path / "step_000001.jsonl"
    games = Unfinished(file)
    games.add_episode(4, episode)
    games.add_score(4, Score({0: 0.5, 1: 0.25}, (True,) * len(episode.turns), {"process": (1.0,) * len(episode.turns)}))
    games.add_score(5, None)
    games.add_episode(5, episode)
    file.write_bytes(file.read_bytes()[:-20])
    again = Unfinished(parts.root / "new.jsonl", [file])
    assert again.episodes == {4: episode}
    assert again.scores[4].returns == {0: 0.5, 1: 0.25}
    assert again.scores[4].turn_rewards == (1.0,) * len(episode.turns)
    assert again.scores[4].passed == (True,) * len(episode.turns)


def test_a_game_that_later_weights_sampled_is_left_out_with_its_score(whole, tmp_path):
    """These weights are gone with the attempt that learned them; the games of weights that were saved stay."""
    first = unfinished.Episode.from_dict(episodes(whole)[1][0]["episode"])
    later = first.traces[0].model_copy(update={"versions": ((0, 1), (1, 2))})
    games = Unfinished(tmp_path / "step_000003.jsonl")
    for number, traces in enumerate((first.traces, (later, *first.traces[1:]))):
        games.add_episode(number, first.model_copy(update={"traces": traces}))
        games.add_score(number, Score({0: 0.5}, (True,) * len(first.turns)))
    for begun, expected in ((1, {0}), (2, {0, 1})):
        again = Unfinished(tmp_path / "new.jsonl", [tmp_path / "step_000003.jsonl"], begun)
        assert (again.episodes.keys(), again.scores.keys()) == (expected, expected)


def test_a_game_that_ended_by_an_error_is_played_again(whole, tmp_path):
    """It may be that of a process that was dying."""
    good = unfinished.Episode.from_dict(episodes(whole)[1][0]["episode"])
    games = Unfinished(tmp_path / "step_000001.jsonl")
    games.add_episode(0, good)
    games.add_episode(1, good.model_copy(update={"traces": (), "error": ErrorRecord(kind="engine", message="lost")}))
    assert Unfinished(tmp_path / "new.jsonl", [tmp_path / "step_000001.jsonl"]).episodes == {0: good}


def test_a_judge_is_not_asked_twice(tmp_path, monkeypatch):
    data = tmp_path / "talk.jsonl"
    data.write_text(dumps(dialogue(turn_limit=2).to_dict()) + "\n")
    with Stub() as stub:
        stub.answer = obliging
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        config, run_dir = make_run(
            tmp_path,
            steps=1,
            game={"name": "dialogue", "settings": {}},
            data={"path": str(data)},
            judge={"address": stub.url, "model": "stub", "retries": 0, "concurrency": 1},
            rollout={"scenarios": 1, "games": 4, "keep_unfinished": True},
            learn={"critic_warmup": 0},
        )
        with monkeypatch.context() as stopping:
            stop_after(stopping, "add_score", [2])
            assert trainer.run(config, run_dir)["result"] == "stopped"
        scored = kept(run_dir, 1)["step_000001.jsonl"][1]
        assert len(scored) >= 2
        before = len(stub.requests)
        assert trainer.run(reopen(run_dir), run_dir)["result"] == "succeeded"
        assert len(stub.requests) - before == 2 * (4 - len(scored))  # one call for each seat of the other games
    assert [line["reward"] for line in history(run_dir)] == [pytest.approx(0.5)]
