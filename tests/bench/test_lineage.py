"""A lineage of one seed: each stage starts from the one before; and how stages are started, resumed and reported."""

import json
from argparse import Namespace
from importlib import import_module

import pytest

from bench import lineage, results
from bench.lineage import Task
from tests.learn.conversations import write_conversations
from tests.learn.small_runs import make_run
from training import dataset
from training.attempts.start import start
from training.cli.runs import RUNNERS
from training.config import RunConfig, parse
from training.errors import BadInput
from training.rundir import RunDir

SFT = {"lora": {"rank": 4, "alpha": 8.0}, "max_length": 4096, "tokens_per_batch": 4096}
CURVES, COMPARED, SHARED = ("reward", "parse_rate"), ("points", "parse_rate"), ("agreement",)
TASK = Task("small.toml", {"conversations": 12}, CURVES, COMPARED, SHARED)


def arguments(file, folder, **changed):
    fixed = {"task": "negotiation", "seeds": 1, "jobs": 1, "critics": "", "dir": folder}
    return Namespace(**dict.fromkeys(("conversations", "starts", "held_out"), file) | fixed | changed)


class Here:
    """An executor that works where it is asked."""

    def __init__(self, workers):
        self.map = map

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.fixture
def in_process(monkeypatch):
    """Stages run here, which saves the imports of a process each; returns the configurations of those that began."""
    begun = {}

    def run(config, folder):
        begun[folder.name] = config
        run_dir = RunDir(folder)
        folder.mkdir(parents=True)
        resolved = start(parse(config), run_dir, folder)
        return import_module(RUNNERS[config["kind"]]).run(resolved, run_dir)

    monkeypatch.setattr(lineage, "_run", run)
    monkeypatch.setattr(lineage, "ThreadPoolExecutor", Here)  # a run's signal handlers want the main thread
    return begun


def test_every_stage_starts_from_the_one_before_and_none_is_repeated(in_process, monkeypatch, tmp_path):
    small, _ = make_run(tmp_path / "made", steps=2)
    presets = {"omar": small.to_dict(), "sft": {"kind": "sft", "model": small.model.to_dict(), "sft": SFT}}
    monkeypatch.setattr(lineage, "load", lambda file: RunConfig.from_dict(presets[file.parent.name]))
    monkeypatch.setitem(lineage.TASKS, "negotiation", TASK)
    asked = arguments(write_conversations(tmp_path / "games.jsonl", 3), tmp_path / "out", critics="constant")
    [row] = lineage.main(asked)["runs"]
    assert list(in_process) == ["cold", "train", "eval", "train-constant"]
    cold = str(RunDir(tmp_path / "out" / "seed-0" / "cold").latest_checkpoint()[1])
    trained = str(RunDir(tmp_path / "out" / "seed-0" / "train").checkpoint_of(2))
    assert [in_process[name]["model"]["base"] for name in ("train", "eval", "train-constant")] == [cold] * 3
    assert (in_process["eval"]["evaluate"]["model"], in_process["eval"]["evaluate"]["opponent"]) == (trained, cold)
    assert in_process["eval"]["rollout"] == small.to_dict()["rollout"]
    assert in_process["train-constant"]["learn"]["critic"]["kind"] == "linear"
    assert len(row["train"]["curves"]["reward"]) == 2
    # the values are what the page's intervals are computed from
    lead = row["eval"]["summary"]["difference"]["points"]["mean"]
    assert len(row["values"]) == 3
    assert sum(each["a"]["points"] - each["b"]["points"] for each in row["values"].values()) / 3 == pytest.approx(lead)
    assert next(results.replications([row], "points", 2)).startswith("| 0 | ")

    in_process.clear()
    assert lineage.main(asked)["runs"] == [row]
    assert not in_process


def test_a_head_to_head_that_failed_is_reported(monkeypatch, tmp_path):
    def run(config, folder):
        return {"result": "failed" if folder.name == "eval" else "succeeded", "why": "no games"}

    monkeypatch.setattr(lineage, "_checkpoint", str)
    monkeypatch.setattr(lineage, "_run", run)
    [row] = lineage.main(arguments(write_conversations(tmp_path / "games.jsonl", 1), tmp_path / "out"))["runs"]
    assert row["eval"] == {"result": "failed", "why": "no games"}
    assert "values" not in row


def test_what_needs_a_stage_that_failed_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(lineage, "_run", lambda config, folder: {"result": "failed", "why": "out of memory"})
    [row] = lineage.main(arguments(write_conversations(tmp_path / "games.jsonl", 1), tmp_path / "out"))["runs"]
    assert row["cold"] == {"curves": {}, "result": "failed", "why": "out of memory"}
    assert set(row) == {"seed", "cold"}
    assert lineage.show({"runs": [row]}) == "seed 0: no result"


def test_a_stage_is_a_run_on_one_thread_and_resumed_where_it_was_interrupted(monkeypatch, tmp_path):
    started = []

    class Done:
        returncode, stdout = 0, json.dumps({"result": "succeeded", "why": "", "step": 3, "dir": "x"})

    def run(command, env, **_):
        started.append((command[3:], env["OMP_NUM_THREADS"]))
        return Done

    monkeypatch.setattr(lineage.subprocess, "run", run)
    folder = tmp_path / "seed-0" / "train"
    done = lineage._run({"kind": "train", "learn": {"steps": 3}}, folder)
    assert (done["result"], done["step"]) == ("succeeded", 3)
    assert json.loads((tmp_path / "seed-0" / "train.json").read_text())["learn"] == {"steps": 3, "threads": 1}
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    lineage._run({"kind": "train"}, folder)
    file = str(tmp_path / "seed-0" / "train.json")
    assert started == [(["run", file, "--dir", str(folder), "--json"], "1"), (["resume", str(folder), "--json"], "1")]
    Done.returncode = 130
    with pytest.raises(KeyboardInterrupt):
        lineage._run({"kind": "train"}, folder)
    Done.returncode, Done.stdout = 2, ""
    with pytest.raises(BadInput, match="its log says why"):
        lineage._run({"kind": "train"}, folder)


@pytest.mark.parametrize(
    "changed, message",
    [({"dir": None}, "--dir"), ({"critics": "best"}, "--critics"), ({"starts": None}, "--starts"), ({}, "--conver")],
)
def test_wrong_arguments_are_refused_before_anything_runs(changed, message, tmp_path):
    file = write_conversations(tmp_path / "games.jsonl", 1) if changed else tmp_path / "missing.jsonl"
    with pytest.raises(BadInput) as caught:
        lineage.main(arguments(file, tmp_path / "out", **changed))
    assert message in caught.value.where


def test_curves_go_on_where_a_run_was_resumed(tmp_path):
    run_dir = RunDir(tmp_path / "train")
    for number, began, rewards in ((1, 0, [0.1, 0.2, 0.3]), (2, 2, [0.5]), (3, 3, [])):
        files = run_dir.attempt(number)
        files.root.mkdir(parents=True)
        files.events.write_text(json.dumps({"at": 0.0, "kind": "started", "step": began}) + "\n")
        lines = [{"step": began + at, "at": 0.0, "reward": reward} for at, reward in enumerate(rewards, 1)]
        files.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert lineage._curves(run_dir.root, ("reward", "kl")) == {"curves": {"reward": [0.1, 0.2, 0.5]}}


def test_villages_are_made_and_those_of_the_head_to_head_are_seen_by_nobody_before(monkeypatch, tmp_path):
    monkeypatch.setattr(lineage, "WEREWOLF_SIZES", (3, 5, 2))
    files = lineage._files(arguments(None, tmp_path, task="werewolf"))
    lines = {name: list(dataset.read(file)) for name, file in files.items()}
    assert {name: len(each) for name, each in lines.items()} == {"conversations": 3, "starts": 5, "held_out": 2}
    names = {name: {line.scenario.seats for line in each} for name, each in lines.items()}
    assert not names["held_out"] & (names["conversations"] | names["starts"])
    assert all(len(line.conversations) == 1 and line.scenario.seed for line in lines["conversations"])
    assert not any(line.conversations or line.scenario.seed for line in lines["starts"] + lines["held_out"])
