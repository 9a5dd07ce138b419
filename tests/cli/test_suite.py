"""`python -m training suite`, from the file to the report: rows, games, provenance, refusals and crashes."""

import json

import pytest

from tests.learn.test_judged_run import obliging
from tests.stub import Stub
from tests.toy_models import write_random_llama
from training import bases, players
from training.attempts.start import reopen
from training.cli import main
from training.cli.runs import show
from training.errors import EngineError
from training.evaluate import nashconv
from training.evaluate.suite.plan import Block, blocks
from training.players.scripted import make as scripted
from training.records import Episode
from training.rundir import RunDir
from training.store import read_lines, read_member, sha256
from training.suites import FOLDER, SuiteTask, starts

SUITE = """
name = "Ours"
[model]
device = "cpu"
[engine]
name = "transformers"
[rollout]
on_refused = "forfeit"
[suite]
games = 2
"""
TASKS = {
    "tic": '[[suite.tasks]]\ngame = "tic_tac_toe"\nopponent = "random"\nscale = {low = [-1], high = [1]}\n',
    "kuhn": '[[suite.tasks]]\ngame = "kuhn_poker"\nopponent = "nash"\n',
    "hanabi": '[[suite.tasks]]\ngame = "hanabi"\nsettings = {size = "mini"}\nopponent = "mirror"\nheld_out = true\n',
    "exact": '[[suite.tasks]]\ngame = "kuhn_poker"\nopponent = "best_response"\n',
}
CREW = """[[suite.tasks]]
game = "among_us"
seats = 5
settings = { width = 2, height = 1, rounds = 30 }
side = ["crewmate"]
opponent = "scripted"
partner = "scripted"
charts = [["Rooms", "2 × 1"]]
"""


@pytest.fixture
def suite(tmp_path, monkeypatch, capfd):
    """Play a suite of these tasks; return (exit code, result, run directory)."""
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))

    def go(tasks, *options, model="scripted", head=SUITE):
        file = tmp_path / "ours.toml"
        file.write_text(head + "".join(tasks))
        folder = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        capfd.readouterr()
        code = main(["suite", str(file), "--model", model, "--dir", str(folder), "--json", *options])
        return code, json.loads(capfd.readouterr().out), RunDir(folder)

    return go


def rows(result):
    return {(row["title"], row["opponent"], row["seat"]): row for row in result["rows"]}


def test_a_row_for_every_task_and_seat_with_its_games_and_conditions(suite):
    code, result, run_dir = suite(TASKS.values())
    assert (code, result["kind"], result["result"]) == (0, "suite", "succeeded")
    assert list(rows(result)) == [
        ("Tic-tac-toe", "random", 0),
        ("Tic-tac-toe", "random", 1),
        ("Tic-tac-toe", "random", None),
        ("Kuhn poker", "nash", 0),
        ("Kuhn poker", "nash", 1),
        ("Kuhn poker", "nash", None),
        ("Hanabi, mini", "mirror", 0),
        ("Hanabi, mini", "mirror", 1),
        ("Hanabi, mini", "mirror", None),
        ("Kuhn poker", "best_response", None),
    ]
    attempt = run_dir.attempt(1)
    assert json.loads((attempt.root / "suite.json").read_text())["rows"] == result["rows"]
    lines = [line for line, _ in read_lines(attempt.index)]
    assert [(line["step"], line["episode"]) for line in sorted(lines, key=lambda x: (x["step"], x["episode"]))] == [
        (step, number) for step in (1, 2, 3, 4, 5) for number in (0, 1)
    ]
    assert {line["summary"]["block"] for line in lines if line["step"] in (2, 5)} == {
        "Tic-tac-toe against random, seat 1",
        "Hanabi, mini, mirror",
    }
    for (_, opponent, seat), row in rows(result).items():
        facts = row["provenance"]
        assert (facts["seat"], facts["seed"], facts["opponent"]["source"]) == (seat, 0, opponent)
        assert "python" in facts["versions"]
        if opponent != "best_response":
            [file] = [path for path in run_dir.inputs.iterdir() if path.name == facts["scenarios"]["file"]]
            assert facts["scenarios"]["sha256"] == sha256(file)
            assert facts["sampling"]["max_tokens"] == 128
            games = 4 if seat is None and opponent != "mirror" else 2
            assert (row["games"], row["played"], row["errors"]) == (games, games, {})
    assert rows(result)["Hanabi, mini", "mirror", None]["held_out"]
    assert rows(result)["Kuhn poker", "best_response", None]["unavailable"].startswith("the probabilities of what")


def test_the_means_are_those_of_the_stored_games(suite):
    _, result, run_dir = suite([TASKS["tic"]], "--games", "3")
    attempt, by_step = run_dir.attempt(1), {}
    for line, _ in read_lines(attempt.index):
        record = read_member(attempt.root / "episodes" / line["file"], line["offset"], line["length"])
        seat = record["seats"]["a"][0]
        by_step.setdefault(line["step"], []).append((seat, Episode.from_dict(record["episode"])))
    assert {step: {seat for seat, _ in games} for step, games in by_step.items()} == {1: {0}, 2: {1}}
    for seat in (0, 1):
        row = rows(result)["Tic-tac-toe", "random", seat]
        returns = [episode.returns[seat] for _, episode in by_step[row["step"]]]
        assert row["raw"]["mean"] == pytest.approx(sum(returns) / 3)
        assert row["normalised"]["mean"] == pytest.approx(50 * (sum(returns) / 3 + 1))
    deals = [{episode.scenario.seed for _, episode in games} for games in by_step.values()]
    assert deals[0] == deals[1]  # both seats play the same deals
    assert len(deals[0]) == 3


def test_a_row_depends_on_the_seed_and_not_on_the_other_tasks(suite):
    _, first, _ = suite([TASKS["tic"], TASKS["kuhn"]], "--games", "4")
    _, again, _ = suite([TASKS["kuhn"]], "--games", "4")
    _, other, _ = suite([TASKS["kuhn"]], "--games", "4", "--seed", "7")
    numbers = [rows(result)["Kuhn poker", "nash", 0]["raw"] for result in (first, again, other)]
    assert numbers[0] == numbers[1] != numbers[2]
    assert rows(other)["Kuhn poker", "nash", 0]["provenance"]["seed"] == 7


@pytest.mark.parametrize(
    "task, options, where",
    [
        (TASKS["tic"].replace("random", "runs/nobody"), (), "suite.tasks.1.opponent"),
        (TASKS["tic"].replace("random", "nash"), (), "suite.tasks.1.opponent"),
        (TASKS["tic"].replace("tic_tac_toe", "go"), (), "suite.tasks.1.game"),
        (TASKS["tic"] + "games = -2\n", (), "suite.tasks.1.games"),
        (CREW.replace("width = 2", "width = 1"), (), "suite.tasks.1.settings"),  # a ship of one room
        (TASKS["tic"] + 'path = "none.jsonl"\n', (), "suite.tasks.1.path"),
        (TASKS["tic"] + 'path = "ours.toml"\n', (), "suite.tasks.1.path"),
        (TASKS["kuhn"], ("--model", "nobody"), "model.base"),
        (TASKS["kuhn"], ("--model", "~nobody/x"), "model.base"),
        (TASKS["kuhn"], ("--model", "x" * 300), "model.base"),
        (TASKS["tic"], ("--model", "cfr"), "model.base"),
    ],
)
def test_what_cannot_be_played_is_refused_before_anything_starts(suite, task, options, where):
    code, result, run_dir = suite([TASKS["kuhn"], task], *options)
    assert code == 2
    assert result["error"]["where"].rpartition(": ")[2] == where
    assert not run_dir.root.exists()


@pytest.mark.parametrize("games", ["0", "-1", "few"])
def test_a_wrong_number_of_games_is_refused(suite, games):
    code, result, run_dir = suite([TASKS["tic"]], "--games", games)
    assert (code, result["error"]["where"]) == (2, "--games")
    assert not run_dir.root.exists()


def test_a_suite_may_name_its_starts(suite, tmp_path):
    centre = {"version": 1, "id": "centre", "game": "tic_tac_toe", "seats": ["Ada", "Ben"], "seed": 3}
    (tmp_path / "starts.jsonl").write_text(json.dumps(centre | {"settings": {"opening": [4]}}) + "\n")
    _, result, run_dir = suite([TASKS["tic"] + 'path = "starts.jsonl"\n'])
    row = rows(result)["Tic-tac-toe", "random", 0]
    assert (row["games"], row["raw"]["n"]) == (2, 1)  # one deal, because its seed is fixed
    assert row["provenance"]["scenarios"]["sha256"] == sha256(tmp_path / "starts.jsonl")
    assert main(["resume", str(run_dir.root)]) == 0  # from its own copy


def test_an_opponent_that_crashes_is_counted_and_is_no_zero(suite, monkeypatch):
    class Crashing:
        """Crashes in the second game."""

        def __init__(self, scenario, seat):
            self.inner, self.crashes = scripted(scenario, seat), scenario.seed == second

        async def act(self, *arguments):
            if self.crashes:
                raise OSError("the process is gone")
            return await self.inner.act(*arguments)

        def traces(self):
            return ()

    def returns(run_dir):
        lines = [line for line, _ in read_lines(run_dir.attempt(1).index) if line["step"] == 1]
        return {line["episode"]: line["summary"]["returns"].get("0") for line in lines}

    second = None
    monkeypatch.setitem(players.NAMES, "crashing", Crashing)
    task = TASKS["kuhn"].replace("nash", "crashing")
    _, _, whole = suite([task], "--games", "3")
    second = blocks(reopen(whole), whole)[0].starts[1].seed
    code, result, run_dir = suite([task], "--games", "3")
    assert (code, result["result"]) == (0, "succeeded")
    row = rows(result)["Kuhn poker", "crashing", 0]
    assert (row["games"], row["played"], row["errors"], row["raw"]["n"]) == (3, 2, {"internal": 1}, 2)
    assert rows(result)["Kuhn poker", "crashing", None]["errors"] == {"internal": 2}
    intact = returns(whole)
    assert returns(run_dir) == intact | {1: None}
    assert row["raw"]["mean"] == pytest.approx((intact[0] + intact[2]) / 2)
    [event] = [line for line, _ in read_lines(run_dir.attempt(1).events) if line["kind"] == "suite"]
    assert (event["games"], event["errors"]) == (6, 2)


def test_a_stopped_suite_begins_anew_when_it_is_resumed(suite, tmp_path, monkeypatch, capfd):
    class Stopping:
        """Asks the run to stop in its first game, then plays on."""

        def __init__(self, scenario, seat):
            self.inner = scripted(scenario, seat)

        async def act(self, *arguments):
            RunDir(tmp_path / "run0").attempt(1).ask("stop")
            return await self.inner.act(*arguments)

        def traces(self):
            return ()

    monkeypatch.setitem(players.NAMES, "stopping", Stopping)
    code, result, run_dir = suite([TASKS["kuhn"].replace("nash", "stopping")])
    assert (code, result["result"], "rows" in result) == (0, "stopped", False)
    assert main(["resume", str(run_dir.root), "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert (result["result"], result["attempt"], result["rows"][0]["played"]) == ("succeeded", 2, 2)
    assert not (run_dir.attempt(1).root / "suite.json").exists()


def test_a_suite_without_a_single_game_fails(suite, monkeypatch):
    class Gone:
        def __init__(self, *_):
            pass

        async def act(self, *_):
            raise EngineError("gone")

        def traces(self):
            return ()

    monkeypatch.setitem(players.NAMES, "gone", Gone)
    code, result, run_dir = suite([TASKS["kuhn"].replace("nash", "gone")])
    assert (code, result["result"]) == (1, "failed")
    assert result["why"].endswith("the first of 4 errors: gone")
    [first, *_] = json.loads((run_dir.attempt(1).root / "suite.json").read_text())["rows"]
    assert (first["raw"], first["errors"]) == (None, {"engine": 2})


def test_a_models_best_response_is_that_of_nashconv(suite, tmp_path):
    folder = write_random_llama(tmp_path / "llama", window=4096)
    _, result, _ = suite([TASKS["exact"]], model=str(folder))
    [row] = result["rows"]
    measured = nashconv.run(
        "kuhn_poker", str(folder), engine="transformers", device="cpu", dtype="float32", on_progress=lambda *_: None
    )
    assert row["exact"] == pytest.approx({name: measured[name] for name in ("nash_conv", "exploitability", "value")})
    assert result["conditions"]["model"]["name"] == bases.read_info(folder).name


def test_the_uniform_policy_has_eleven_twelfths(suite):
    _, result, _ = suite([TASKS["exact"]], model="random")
    assert result["rows"][0]["exact"]["nash_conv"] == pytest.approx(11 / 12)
    _, result, _ = suite([TASKS["exact"]], model="nash")
    assert result["rows"][0]["exact"]["nash_conv"] == pytest.approx(0, abs=1e-12)


def test_a_model_plays_and_its_malformed_replies_lose(suite, tmp_path):
    folder = write_random_llama(tmp_path / "llama", window=4096)
    head = SUITE.replace("[rollout]", "[sampling]\nmax_tokens = 4\n[rollout]")
    _, result, _ = suite([TASKS["tic"]], model=str(folder), head=head)
    row = rows(result)["Tic-tac-toe", "random", None]
    assert (row["raw"]["mean"], row["normalised"]["mean"], row["legal_rate"]["mean"]) == (-1, 0, 0)
    assert row["raw"]["high"] > -1  # of equal results


def test_the_episodes_and_rows_name_no_folder_and_no_secret(suite, tmp_path):
    folder = write_random_llama(tmp_path / "llama", window=4096)
    head = SUITE.replace("[rollout]", "[sampling]\nmax_tokens = 4\n[rollout]")
    info = bases.ModelInfo(name="llama", base="llama", parent=str(tmp_path / "earlier"))
    (folder / bases.INFO).write_text(json.dumps(info.to_dict()))
    _, result, run_dir = suite([TASKS["tic"]], model=str(folder), head=head)
    assert (result["conditions"]["model"]["source"], result["conditions"]["model"]["parent"]) == ("llama", "earlier")
    assert str(tmp_path) not in (run_dir.attempt(1).root / "suite.json").read_text()
    _, result, run_dir = suite([TASKS["tic"].replace("random", str(folder))], head=head)
    assert str(tmp_path) not in (run_dir.attempt(1).root / "suite.json").read_text()
    titles = {line["summary"]["block"] for line, _ in read_lines(run_dir.attempt(1).index)}
    assert titles == {f"Tic-tac-toe against llama, seat {seat}" for seat in (0, 1)}
    assert {row["provenance"]["opponent"]["source"] for row in result["rows"]} == {"llama"}
    task = SuiteTask(game="tic_tac_toe", opponent="https://host/v1 model SECRET_NAME")
    block = Block(1, 0, task, 0, tmp_path, starts("tic_tac_toe"))
    assert block.title == "Tic-tac-toe against model, seat 0"


# --- pairings of strategists and a speaker ---

PAIRINGS = """[[suite.tasks]]
title = "Speaker"
game = "{game}"
settings = {{ turn_limit = 4 }}
measured = "speaker"
opponent = "mirror"
[[suite.tasks]]
title = "Against the speaker"
game = "{game}"
settings = {{ turn_limit = 4 }}
opponent = "speaker"
[[suite.tasks]]
title = "Against untrained"
game = "{game}"
settings = {{ turn_limit = 4 }}
opponent = "untrained"
[[suite.tasks]]
title = "Strategist"
game = "{game}"
settings = {{ turn_limit = 4 }}
opponent = "mirror"
"""
ADVISED = SUITE.replace("[rollout]", '[speaker]\nsource = "follower:50"\n[sampling]\nmax_tokens = 4\n[rollout]')


def games_of(run_dir):
    """The stored games by task and seat: the record, and which seats had a strategist."""
    attempt, games = run_dir.attempt(1), {}
    for line, _ in read_lines(attempt.index):
        record = read_member(attempt.root / "episodes" / line["file"], line["offset"], line["length"])
        advised = {trace["seat"] for trace in record["episode"]["traces"]}
        games.setdefault(line["summary"]["block"], []).append((record, advised))
    return games


def test_a_checkpoint_meets_its_speaker_and_its_start(suite, tmp_path):
    start, trained = (write_random_llama(tmp_path / name, window=4096, seed=at) for at, name in enumerate("ab"))
    info = bases.ModelInfo(name="trained", base="elsewhere", parent=str(start))
    (trained / bases.INFO).write_text(json.dumps(info.to_dict()))
    code, result, run_dir = suite([PAIRINGS.format(game="negotiation")], model=str(trained), head=ADVISED)
    assert code == 0
    games = games_of(run_dir)
    # in some games a seat walks away before the other one has moved
    assert {title: set().union(*(seats for _, seats in of_block)) for title, of_block in games.items()} == {
        "Speaker": set(),
        "Against the speaker, seat 0": {0},
        "Against the speaker, seat 1": {1},
        "Against untrained, seat 0": {0, 1},
        "Against untrained, seat 1": {0, 1},
        "Strategist": {0, 1},
    }
    whole = {row["title"]: row for row in result["rows"] if row["seat"] is None}
    models = [whole[title]["provenance"]["model"] for title in whole]
    assert models == ["follower:50", "trained", "trained", "trained"]
    assert [row["opponent"] for row in whole.values()] == ["mirror", "follower:50", "a", "mirror"]
    for title in ("Against the speaker", "Against untrained"):
        by_seat = [[record["returns"] for record, _ in games[f"{title}, seat {seat}"]] for seat in (0, 1)]
        seat_returns = [returns[str(seat)] for seat in (0, 1) for returns in by_seat[seat]]
        other = [returns[str(1 - seat)] for seat in (0, 1) for returns in by_seat[seat]]
        assert whole[title]["raw"]["mean"] == pytest.approx(sum(seat_returns) / 4)
        assert whole[title]["opposite"]["mean"] == pytest.approx(sum(other) / 4)
        assert whole[title]["joint"]["mean"] == pytest.approx(sum(seat_returns + other) / 8)
    for title in ("Speaker", "Strategist"):  # all seats are the model's
        assert whole[title]["opposite"] is None
        assert whole[title]["joint"]["mean"] == pytest.approx(whole[title]["raw"]["mean"])
    assert "opposite" in show(result)


def test_a_speaker_is_named_on_the_command_line(suite, tmp_path):
    folder = write_random_llama(tmp_path / "llama", window=4096)
    tasks = [PAIRINGS.format(game="negotiation")]
    code, result, run_dir = suite(tasks, "--speaker", "follower:7", "--games", "1", model=str(folder), head=ADVISED)
    assert code == 0
    assert reopen(run_dir).speaker.source == "follower:7"
    assert result["rows"][0]["provenance"]["model"] == "follower:7"


@pytest.mark.parametrize(
    "game, judge, why",
    [
        ("negotiation", "http://127.0.0.1:1/v1 grader", "no game of this suite needs a judge"),
        ("dialogue", "grader", "named by address, model"),
    ],
)
def test_a_judge_that_cannot_be_used_is_refused_at_its_option(suite, game, judge, why):
    head = ADVISED.replace("[rollout]", '[judge]\naddress = "http://127.0.0.1:1/v1"\nmodel = "m"\n[rollout]')
    code, result, _ = suite([PAIRINGS.format(game=game)], "--judge", judge, model="random", head=head)
    assert code == 2
    assert "--judge" in str(result)
    assert why in str(result)


def test_only_a_model_has_an_untrained_start(suite):
    code, result, _ = suite([PAIRINGS.format(game="negotiation")], model="random", head=ADVISED)
    assert code == 2
    assert "suite.tasks.2.opponent" in str(result)
    assert "only a model here was trained" in str(result)


def test_a_judge_gives_the_returns_of_a_dialogue(suite, tmp_path, monkeypatch):
    folder = write_random_llama(tmp_path / "llama", window=4096)
    with Stub() as stub:
        stub.answer = obliging  # the best values for seat 0, the worst for seat 1
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        head = ADVISED.replace("[rollout]", f'[judge]\naddress = "{stub.url}"\nmodel = "stub"\nretries = 0\n[rollout]')
        code, result, run_dir = suite([PAIRINGS.format(game="dialogue")], model=str(folder), head=head)
        assert code == 0
        assert not any("Your strategist" in str(request.body) for request in stub.requests)
        stub.answer = "no answer"
        failed_code, failed, _ = suite([PAIRINGS.format(game="dialogue")], model=str(folder), head=head)
    by_title = {(row["title"], row["seat"]): row for row in result["rows"]}
    at_0, at_1 = (by_title["Against the speaker", seat] for seat in (0, 1))
    assert [at_0["raw"]["mean"], at_0["opposite"]["mean"], at_0["joint"]["mean"]] == [10, 0, 5]
    assert [at_1["raw"]["mean"], at_1["opposite"]["mean"], at_1["joint"]["mean"]] == [0, 10, 5]
    assert by_title["Strategist", None]["raw"]["mean"] == 5
    judged_by = {"model": "stub", "codebook": "sotopia v1", "value": "goal"}
    assert [row["provenance"]["judge"] for row in result["rows"]] == [judged_by] * len(result["rows"])
    record, _ = games_of(run_dir)["Strategist"][0]
    assert {judgment["seat"] for judgment in record["judgments"]} == {0, 1}
    assert (failed_code, failed["result"]) == (1, "failed")
    assert "could not score" in failed["why"]


CONSTRAINED = SUITE.replace("[rollout]", "[sampling]\nmax_tokens = {}\nconstrain = true\n[rollout]")


@pytest.mark.parametrize(
    "head, window, why",
    [
        (SUITE.replace('name = "transformers"', 'name = "transformers"\nwindow = 128'), 512, "engine.window"),
        (SUITE, 128, "sampling.max_tokens"),
        (CONSTRAINED.format(3), 512, "sampling.max_tokens"),
    ],
    ids=["the engine's window", "the model's window", "legal moves"],
)
@pytest.mark.parametrize("as_opponent", [False, True])
def test_replies_that_cannot_be_sampled_are_refused_before_anything_starts(
    suite, tmp_path, head, window, why, as_opponent
):
    folder = str(write_random_llama(tmp_path / "llama", window=window))
    task, model = (TASKS["kuhn"].replace("nash", folder), "nash") if as_opponent else (TASKS["kuhn"], folder)
    code, result, run_dir = suite([task], model=model, head=head)
    assert (code, result["error"]["where"].rpartition(": ")[2]) == (2, why)
    assert not run_dir.root.exists()


def test_the_suite_of_mars_runs_for_players_and_prints_its_rows(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    file, folder = str(FOLDER / "mars.toml"), str(tmp_path / "run")
    assert main(["suite", file, "--model", "random", "--games", "1", "--dir", folder]) == 0
    shown = capfd.readouterr().out
    assert "Hanabi, simple    mirror          all seats" in shown
    assert "NashConv 0.9167" in shown
    assert "normalised" in shown
    assert "legal 1.00" in shown
    assert "caution: rows with n fewer than 30" in shown


# --- a side ---


def stored(run_dir):
    """Every stored game of a suite with who played its seats."""
    attempt = run_dir.attempt(1)
    for line, _ in read_lines(attempt.index):
        record = read_member(attempt.root / "episodes" / line["file"], line["offset"], line["length"])
        yield record["seats"], Episode.from_dict(record["episode"])


def test_a_side_is_played_beside_a_partner_and_against_the_others(suite):
    code, result, run_dir = suite([CREW], "--games", "4", model="random")
    assert code == 0
    [row] = result["rows"]
    assert (row["seat"], row["side"], row["partner"], row["charts"]) == (
        None, ["crewmate"], "scripted", [["Rooms", "2 × 1"]],
    )  # fmt: skip
    assert (row["games"], row["played"], row["step"]) == (4, 4, 1)
    assert (row["provenance"]["side"], row["provenance"]["players"]) == (["crewmate"], 5)
    shares, returns, partners = [], [], set()
    for seats, episode in stored(run_dir):
        crew = {seat for seat, role in enumerate(episode.roles) if role == "crewmate"}
        assert set(seats["a"]) | set(seats["partner"]) == crew
        assert (len(seats["a"]), len(seats["b"])) == (3, 1)
        partners |= set(seats["partner"])
        shares.append(episode.metrics["crew_won"])
        returns.append(sum(episode.returns[seat] for seat in seats["a"]) / 3)
    assert row["won"]["mean"] == pytest.approx(sum(shares) / 4)
    assert row["raw"]["mean"] == pytest.approx(sum(returns) / 4)
    assert row["raw"]["n"] == 4


def test_tasks_that_differ_in_side_or_settings_have_lines_and_metrics_of_their_own(suite):
    alone, other = CREW.replace('partner = "scripted"\n', ""), CREW.replace("rounds = 30", "rounds = 29")
    code, result, run_dir = suite([CREW, alone, other], "--games", "2", model="random")
    assert code == 0
    [line] = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    names = [name for name in line if name.startswith("return/")]
    assert len(names) == 3
    assert sum(name.endswith("against scripted, crewmate") for name in names) == 1
    assert sum("crewmate beside scripted (task " in name for name in names) == 2
    shown = [line for line in show(result).splitlines() if "crewmate" in line]
    assert ["beside scripted" in line for line in shown] == [True, False, True]


def test_every_model_has_the_same_deals_and_the_same_seat_of_the_partner(suite):
    runs = [suite([CREW], "--games", "6", model=model)[2] for model in ("random", "scripted")]
    first, second = (
        sorted((episode.scenario.seed, seats["partner"], seats["b"]) for seats, episode in stored(run)) for run in runs
    )
    assert first == second
    assert len({partner[0] for _, partner, _ in first}) > 1, "drawn anew in every game"


def test_the_command_line_names_who_plays_beside_a_side(suite):
    _, result, _ = suite([CREW], "--games", "1", "--opponent", "random", "--partner", "random")
    assert [(row["opponent"], row["partner"]) for row in result["rows"]] == [("random", "random")]
    code, result, run_dir = suite([TASKS["tic"]], "--partner", "random")
    assert (code, result["error"]["where"]) == (2, "--partner")
    assert not run_dir.root.exists()


@pytest.mark.parametrize(
    "change, where",
    [
        (('"crewmate"', '"wolf"'), "suite.tasks.1.side"),
        (('"crewmate"', '"crewmate", "imposter"'), "suite.tasks.1.side"),
        (('"crewmate"', '"imposter"'), "suite.tasks.1.partner"),
        (('partner = "scripted"', 'partner = "nobody"'), "suite.tasks.1.partner"),
        (('opponent = "scripted"', 'opponent = "nobody"'), "suite.tasks.1.opponent"),
    ],
)
def test_a_side_that_cannot_be_played_is_refused(suite, change, where):
    code, result, run_dir = suite([TASKS["kuhn"], CREW.replace(*change)])
    assert (code, result["error"]["where"].rpartition(": ")[2]) == (2, where)
    assert not run_dir.root.exists()


def test_a_game_without_roles_has_no_side(suite):
    code, result, _ = suite([TASKS["tic"] + 'side = ["cross"]\n'])
    assert (code, result["error"]["where"].rpartition(": ")[2]) == (2, "suite.tasks.0.side")
