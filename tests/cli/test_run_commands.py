"""Runs from a shell: start, resume, stop by Ctrl-C, and refusal without a trace."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.toy_models import write_random_llama
from training import config, samples
from training.attempts.lock import hold
from training.cli import main, runs
from training.records import Episode, Move, SeatMove
from training.rundir import RunDir
from training.store import dumps, read_lines, verify_directory

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
seed = 5
[model]
base = "{model}"
device = "cpu"
[engine]
name = "transformers"
window = 4096
[sampling]
max_tokens = 8
[game]
settings = {{ turn_limit = 2 }}
[data]
path = "data.jsonl"
[rollout]
scenarios = 1
games = 2
[learn]
steps = {steps}
lora = {{ rank = 2, alpha = 4.0 }}
lr = 1e-3
critic_warmup = 0
ent_coef = 0.01
save_every = 1000
threads = 1
tokens_per_batch = 8192
[sft]
lora = {{ rank = 2, alpha = 4.0 }}
max_length = 4096
tokens_per_batch = 4096
[evaluate]
conversations = 2
[stop]
failing = 1.0
patience = 100000
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "toy"
    write_random_llama(folder, window=4096)
    return folder


@pytest.fixture
def place(model, tmp_path):
    """A folder with a configuration of two steps beside a dataset with one conversation."""
    scenario = samples.load("items")[0]
    scenario = scenario.model_copy(update={"settings": {**scenario.settings, "first_seat": 0}})
    moves = (SeatMove(seat=0, move=Move(action="talk", text="Hi.")), SeatMove(seat=1, move=Move(action="walk_away")))
    episode = Episode(scenario=scenario, moves=moves)
    line = {"scenario": scenario.to_dict(), "conversations": [{"source": "test", "episode": episode.to_dict()}]}
    (tmp_path / "data.jsonl").write_text(dumps(line) + "\n", "utf-8")
    (tmp_path / "run.toml").write_text(CONFIG.format(model=model, steps=2), "utf-8")
    return tmp_path


def interrupted_after(file, *arguments):
    """Run a command, press Ctrl-C once `file` is there, give it 30 s; return (exit code, standard output and error)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "training", *map(str, arguments), "--json"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline and not file.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
        return process.returncode, out, errors
    finally:
        process.kill()


def test_run_and_resume(place, capfd):
    folder = place / "run"
    assert main(["run", str(place / "run.toml"), "--dir", str(folder), "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert (result["kind"], result["result"], result["step"], result["attempt"]) == ("train", "succeeded", 2, 1)
    assert result["dir"] == str(folder)
    run_dir = RunDir(folder)
    assert run_dir.latest_checkpoint()[0] == 2
    assert len(list(read_lines(run_dir.attempt(1).metrics))) == 2

    assert main(["run", str(place / "run.toml"), "--dir", str(folder)]) == 2
    assert "not an empty directory" in capfd.readouterr().err

    assert main(["resume", str(folder), "--attempt", "7", "--json"]) == 0  # nothing is left to do
    assert run_dir.attempts() == [1, 7]
    capfd.readouterr()


def test_resume_of_a_live_run_names_the_holder_and_writes_nothing(place, capfd):
    folder = place / "live"
    assert main(["run", str(place / "run.toml"), "--dir", str(folder)]) == 0
    with hold(RunDir(folder)):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        capfd.readouterr()
        assert main(["resume", str(folder)]) == 2
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    out, errors = capfd.readouterr()
    assert out == ""
    (line,) = errors.splitlines()
    assert f"process {os.getpid()} on {socket.gethostname()} (attempt 2) is working on this run" in line


@pytest.mark.slow
def test_ctrl_c_saves_a_checkpoint_and_leaves_with_130(place, model):
    (place / "long.toml").write_text(CONFIG.format(model=model, steps=100_000), "utf-8")
    folder = RunDir(place / "long")
    metrics = folder.attempt(1).metrics
    code, out, errors = interrupted_after(metrics, "run", place / "long.toml", "--dir", folder.root)
    assert code == 130, errors
    result = json.loads(out)
    assert result["result"] == "stopped"
    assert "SIGINT" in result["why"]
    step, checkpoint = folder.latest_checkpoint()
    assert step == result["step"] == len(list(read_lines(metrics))) >= 1
    verify_directory(checkpoint)
    assert "\x1b" not in out + errors

    second = folder.attempt(2).metrics
    assert interrupted_after(second, "resume", folder.root)[0] == 130
    assert next(read_lines(second))[0]["step"] == step + 1


def test_sft_takes_a_configuration_of_its_own_kind_or_of_none(place, capfd):
    folder = place / "cold"
    assert main(["sft", str(place / "run.toml"), "--dir", str(folder), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["kind"] == "sft"
    assert config.load(RunDir(folder).config).kind == "sft"
    assert RunDir(folder).latest_checkpoint()[0] >= 1
    (place / "other.toml").write_text('kind = "train"\n' + (place / "run.toml").read_text("utf-8"), "utf-8")
    assert main(["sft", str(place / "other.toml"), "--dir", str(place / "none")]) == 2
    assert "of kind 'train', not 'sft'" in capfd.readouterr().err
    assert not (place / "none").exists()


def test_eval_plays_a_head_to_head(place, capfd):
    assert main(["eval", str(place / "run.toml"), "--dir", str(place / "eval"), "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert (result["kind"], result["result"]) == ("eval", "succeeded")
    assert result["conditions"]["conversations"] == 2
    assert main(["eval", str(place / "run.toml"), "--dir", str(place / "again")]) == 0
    shown = capfd.readouterr().out
    assert "2 of 2 conversations count; scenarios: 1" in shown
    numbers = result["summary"]
    assert all(len(line) <= 120 for line in shown.splitlines())
    assert {name for name in {**numbers["difference"], **numbers["shared"]} if f"\n{name} " not in shown} == set()


def test_a_training_run_ends_with_the_sentence_on_its_head_to_head(place, capfd):
    file = place / "run.toml"
    file.write_text(file.read_text("utf-8").replace("conversations = 2", "conversations = 4\nat_end = true"), "utf-8")
    two = samples.load("items")[:2]
    (place / "data.jsonl").write_text("".join(dumps(scenario.to_dict()) + "\n" for scenario in two), "utf-8")
    assert main(["run", str(file), "--dir", str(place / "one"), "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert (result["kind"], result["step"], result["summary"]["conversations"]) == ("train", 2, 4)
    assert " over 2 scenarios" in result["verdict"]
    assert main(["run", str(file), "--dir", str(place / "two")]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == result["verdict"]


@pytest.mark.parametrize(
    "old, new, where",
    [
        ("steps = 2", "steps = 0", "learn.steps"),
        ('path = "data.jsonl"', 'path = "nothing.jsonl"', "data.path"),
        ("[stop]", "[stop]\nspeed = 1", "stop.speed"),
        ("conversations = 2", 'every = 1\nopponent = "nobody"', "model"),
        ("conversations = 2", 'every = 1\nopponent = "http://nobody/v1 x"', "http://nobody/v1"),
        ('base = "', 'base = "/no/such', "model"),
        ("scenarios = 1", "scenarios = one", "run.toml"),
    ],
)
def test_a_refused_configuration_leaves_nothing(place, capfd, old, new, where):
    file = place / "run.toml"
    file.write_text(file.read_text("utf-8").replace(old, new, 1), "utf-8")
    before = sorted(place.rglob("*"))
    assert main(["run", str(file), "--dir", str(place / "deep" / "run"), "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert where in error["where"]
    assert sorted(place.rglob("*")) == before


def test_bytes_that_are_no_text_leave_nothing_either(place, capfd):
    (place / "data.jsonl").write_bytes(b'{"id": "\xff"}\n')
    before = sorted(place.rglob("*"))
    assert main(["run", str(place / "run.toml"), "--dir", str(place / "deep" / "run"), "--json"]) == 2
    assert "line 1" in json.loads(capfd.readouterr().out)["error"]["where"]
    assert sorted(place.rglob("*")) == before


def test_a_folder_that_cannot_be_made_is_wrong_input(place, capfd):
    (place / "file").write_text("")
    assert main(["run", str(place / "run.toml"), "--dir", str(place / "file" / "run"), "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert error["where"] == str(place / "file" / "run")
    assert "cannot be made: Not a directory" in error["why"]


def test_a_folder_with_anything_in_it_is_left_alone(place, capfd):
    folder = place / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("important", "utf-8")
    assert main(["run", str(place / "run.toml"), "--dir", str(folder)]) == 2
    assert [file.name for file in folder.iterdir()] == ["thesis.txt"]
    assert "not an empty directory" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["sft", "eval"])
def test_a_cold_start_and_an_evaluation_are_refused_beside_a_cluster(place, capfd, monkeypatch, kind):
    """Else they would silently take the CPU of a machine whose GPUs are those of the cluster."""
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.5:6379")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    file = place / "run.toml"
    file.write_text(file.read_text("utf-8").replace('device = "cpu"', 'device = "auto"'), "utf-8")
    assert main([kind, str(file), "--dir", str(place / "new" / "run"), "--json"]) == 2
    assert json.loads(capfd.readouterr().out)["error"]["where"] == "model.device"
    assert not (place / "new").exists()


def test_what_loads_no_model_plays_beside_a_cluster(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.5:6379")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    file = tmp_path / "suite.toml"
    file.write_text(
        'kind = "suite"\n[suite]\ngames = 2\ntasks = [{game = "kuhn_poker", opponent = "random"}]\n', "utf-8"
    )
    assert main(["suite", str(file), "--dir", str(tmp_path / "run"), "--model", "random"]) == 0
    assert "result: succeeded" in capfd.readouterr().out


def test_every_kind_has_a_runner():
    kinds = set(config.RunConfig.model_json_schema()["properties"]["kind"]["enum"])
    assert set(runs.RUNNERS) == kinds
