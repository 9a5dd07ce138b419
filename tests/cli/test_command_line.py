"""The command line: names that others build on, exit codes, a clean standard output, a quick `--help`."""

import json
import os
import pty
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from training import dataset, samples
from training.cli import main
from training.games import REGISTRY, replay
from training.methods import REGISTRY as METHODS
from training.records import Episode
from training.store import dumps

ROOT = Path(__file__).resolve().parents[2]
PLAY = ["play", "negotiation", "--players", "scripted,random", "--episodes", "40", "--seed", "0", "--json"]


def call(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "training", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, **options
    )


def answer(capsys, *arguments, code=0):
    """The one JSON object that a command prints."""
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_games_lists_the_registry(capsys):
    games = answer(capsys, "games")["games"]
    assert [game["name"] for game in games] == list(REGISTRY)
    assert main(["games"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in REGISTRY)


def test_methods_lists_the_registry(capsys):
    methods = answer(capsys, "methods")["methods"]
    assert [list(method) for method in methods] == [["name", "summary"]] * len(METHODS)
    assert [method["name"] for method in methods] == list(METHODS)
    assert all(method["summary"].endswith(".") for method in methods)
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert [line.split(maxsplit=1) for line in shown.splitlines()] == [list(method.values()) for method in methods]


def test_play_is_the_same_for_the_same_seed_but_for_the_seconds(capsys):
    summaries = []
    for seed in ("0", "0", "1"):
        result = answer(capsys, *PLAY[:-3], "--seed", seed)
        assert result.pop("seconds") > 0
        summaries.append(result)
    assert summaries[0] == summaries[1] != summaries[2] | {"seed": 0}
    assert summaries[0]["episodes"] == 40
    assert summaries[0]["forfeits"] == 0
    assert len(summaries[0]["returns"]) == 2
    assert all(0 <= mean <= 1 for mean in summaries[0]["returns"])


def test_play_means_are_those_of_the_episodes(capsys, tmp_path):
    out = tmp_path / "episodes.jsonl"
    result = answer(capsys, *PLAY[:-1], "--out", str(out))
    episodes = [Episode.from_dict(json.loads(line)) for line in out.read_text("utf-8").splitlines()]
    assert len(episodes) == 40
    for seat in (0, 1):
        assert result["returns"][seat] == pytest.approx(statistics.fmean(e.returns[seat] for e in episodes))
    assert result["metrics"]["turns"] == pytest.approx(statistics.fmean(len(e.moves) for e in episodes))
    assert main([*PLAY, "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_game_that_is_only_known_by_its_name_is_played_from_its_one_start(capsys):
    result = answer(capsys, "play", "openspiel:nim", "--players", "mcts:50,random", "--episodes", "5")
    assert result["episodes"] == 5
    assert result["returns"][0] == -result["returns"][1]


def test_games_without_a_judge_have_no_return(capsys):
    result = answer(capsys, "play", "dialogue", "--players", "scripted,scripted", "--episodes", "3")
    assert result["returns"] == [None, None]
    assert main(["play", "dialogue", "--players", "scripted,scripted", "--episodes", "3"]) == 0
    assert "not scored" in capsys.readouterr().out


def test_play_reads_a_scenario_file(capsys, tmp_path):
    file = tmp_path / "two.jsonl"
    fixed, drawn = samples.load("items")[0].with_seed(77), samples.load("items")[1].with_seed(0)
    file.write_text("".join(dumps(s.to_dict()) + "\n" for s in (fixed, drawn)), "utf-8")
    out = tmp_path / "out.jsonl"
    assert answer(capsys, *PLAY[:-3], "--scenarios", str(file), "--out", str(out))["episodes"] == 40
    played = [json.loads(line)["scenario"] for line in out.read_text("utf-8").splitlines()]
    assert [p["id"] for p in played] == [fixed.id, drawn.id] * 20
    assert {p["seed"] for p in played[::2]} == {77}
    assert len({p["seed"] for p in played[1::2]} - {0}) == 20


def test_play_writes_a_dataset_of_the_starts_with_their_games(capsys, tmp_path):
    file, six = tmp_path / "villages.jsonl", ",".join(["scripted"] * 6)
    starts = [start for start in samples.load("werewolf") if len(start.seats) == 6]
    count = len(starts) + 1
    assert answer(capsys, "play", "werewolf", "--players", six, "--episodes", str(count), "--dataset", str(file))
    lines = list(dataset.read(file))
    assert [line.scenario for line in lines] == starts
    assert [len(line.conversations) for line in lines] == [2] + [1] * (len(starts) - 1)
    first, second = (conversation.episode for conversation in lines[0].conversations)
    assert first.scenario.seed != second.scenario.seed
    assert lines[0].conversations[0].source == "played by scripted"
    assert replay(first.scenario, first.moves).returns() == first.returns
    assert main(["play", "werewolf", "--players", six, "--dataset", str(file)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, where, why",
    [
        (["play", "chess", "--players", "random,random"], "game", "unknown game"),
        (["play", "negotiation", "--players", "random,nobody"], "players", "unknown player"),
        (["play", "negotiation", "--players", "random"], "--players", "for 2 players, not 1"),
        (["play", "werewolf", "--players", "random,random"], "--players", "for 6 or 9 players, not 2"),
        (["play", "negotiation", "--players", "random,random", "--scenarios", "/no/file"], "/no/file", "no such file"),
        (
            ["play", "negotiation", "--players", "random,random", "--out", "/no/folder/o.jsonl"],
            "/no/folder/o.jsonl",
            "its folder does not exist",
        ),
        (["models", "prepare", "nothing"], "model", "unknown base model"),
        (["run", "/no/file.toml", "--dir", "/no/folder"], "/no/file.toml", "cannot be read"),
        (["resume", "/no/run"], "/no/run", "not a run directory"),
    ],
)
def test_wrong_input_is_reported_with_its_place_and_code_2(capsys, arguments, where, why):
    assert main([*arguments, "--json"]) == 2
    shown = capsys.readouterr()
    error = json.loads(shown.out)["error"]
    assert (error["kind"], error["where"]) == ("input", where)
    assert why in error["why"]
    assert why in shown.err


def test_a_wrong_line_of_a_scenario_file_is_named(capsys, tmp_path):
    file = tmp_path / "bad.jsonl"
    good = samples.load("items")[0].to_dict()
    file.write_text(dumps(good) + "\n" + dumps({**good, "id": "b", "seats": []}) + "\n", "utf-8")
    assert main([*PLAY, "--scenarios", str(file)]) == 2
    assert "bad.jsonl line 2" in capsys.readouterr().err
    file.write_text(dumps({**good, "settings": {"turn_limit": 1}}) + "\n", "utf-8")
    assert main([*PLAY, "--scenarios", str(file)]) == 2
    assert f"scenario {good['id']}: settings" in capsys.readouterr().err
    file.write_text(dumps(samples.load("dialogues")[0].to_dict()) + "\n", "utf-8")
    assert main([*PLAY, "--scenarios", str(file)]) == 2
    assert "is of the game dialogue" in capsys.readouterr().err
    file.write_text("", "utf-8")
    assert main([*PLAY, "--scenarios", str(file)]) == 2
    assert "contains no scenario" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, where",
    [
        ([], "arguments"),
        (["fly"], "COMMAND"),
        (["play"], "arguments"),
        ([*PLAY[:-1], "--episodes", "0"], "--episodes"),
        ([*PLAY[:-1], "--seed", "-1"], "--seed"),
        (["games", "--loud"], "arguments"),
    ],
)
def test_wrong_arguments_have_code_2(capsys, arguments, where):
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "usage: python -m training" in shown.err
    assert main([*arguments, "--json"]) == 2
    shown = capsys.readouterr()
    error = json.loads(shown.out)["error"]
    assert (error["kind"], error["where"]) == ("input", where)
    assert error["why"] in shown.err


def test_preparing_a_model_draws_no_bars_into_a_file():
    code = (
        "import training.learn.prepare as preparing\n"
        "def prepare(name, force):\n"
        "    from huggingface_hub.utils import tqdm as hub\n"
        "    from tqdm.auto import tqdm\n"
        "    return sum(tqdm(range(3))) + sum(hub(range(3)))\n"
        "preparing.prepare = prepare\n"
        "from training.cli import main\n"
        "raise SystemExit(main(['models', 'prepare', 'tiny']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "tiny is ready in 6" in done.stdout


HELPS = ["", "games", "methods", "play", "sft", "run", "resume", "eval", "behaviours", "models"]


@pytest.mark.parametrize("command", HELPS)
def test_every_help_documents_the_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"] if command else ["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert [int(code) for code in re.findall(r"^  (\d+) ", text, re.MULTILINE)] == [0, 1, 2, 130]


@pytest.mark.serial
def test_help_is_quick_and_imports_nothing_heavy():
    def seconds(*command):
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
        return time.perf_counter() - began

    bare = min(seconds("-c", "pass") for _ in range(3))
    for command in (["--help"], ["run", "--help"]):
        assert min(seconds("-m", "training", *command) for _ in range(3)) - bare <= 0.5
    code = "import sys; from training.cli.parser import build; build(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert not {"torch", "transformers", "vllm", "pydantic", "numpy", "training.records"} & set(loaded.split())


def test_playing_imports_no_model_library():
    code = (
        "import sys; from training.cli import main; "
        f"main({[*PLAY[:5], '2', '--json']!r}); main(['games']); main(['methods']); main(['models']); "
        "print('loaded', *sorted({'torch', 'transformers', 'vllm', 'trl', 'django'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "loaded"


def test_standard_output_is_one_object_even_if_a_library_prints(monkeypatch, capfd):
    from training.cli import games

    honest = games.main

    def chatty(arguments):
        print("a library says hello")  # noqa: T201
        os.write(1, b"so does one in C\n")
        subprocess.run(["echo", "and a child process"], check=True)
        return honest(arguments)

    monkeypatch.setattr(games, "main", chatty)
    assert main(["games", "--json"]) == 0
    shown = capfd.readouterr()
    assert list(json.loads(shown.out)) == ["games"]
    assert {"a library says hello", "so does one in C", "and a child process"} <= set(shown.err.splitlines())


def test_no_ansi_with_and_without_a_terminal():
    """Nothing is coloured at all: output reads the same in a pipe and in a terminal."""
    done = call("play", "negotiation", "--players", "scripted,scripted", "--episodes", "3")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    wrong = call("play", "chess", "--players", "a,b")
    assert wrong.returncode == 2
    assert "\x1b" not in wrong.stdout + wrong.stderr
    controller, terminal = pty.openpty()
    shown = subprocess.run([sys.executable, "-m", "training", "games"], cwd=ROOT, stdout=terminal, check=True)
    os.close(terminal)
    assert shown.returncode == 0
    assert b"\x1b" not in os.read(controller, 65536)
    os.close(controller)


def test_an_interrupted_game_has_code_130(monkeypatch, capsys):
    from training.cli import play

    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(play, "main", interrupted)
    assert main(PLAY) == 130
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "interrupted"


def test_a_failure_outside_the_input_has_code_1(monkeypatch, capsys):
    from training.cli import play
    from training.errors import EngineError

    def failed(arguments):
        raise EngineError("out of memory")

    monkeypatch.setattr(play, "main", failed)
    assert main(PLAY) == 1
    assert json.loads(capsys.readouterr().out) == {"error": {"kind": "engine", "why": "out of memory"}}


def test_whoever_stops_reading_gets_no_traceback():
    with subprocess.Popen(
        [sys.executable, "-m", "training", "games"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.close()
        assert (listing.stderr.read(), listing.wait()) == (b"", 0)
