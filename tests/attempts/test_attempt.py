"""An attempt from its preparation to its end: what is raised, what becomes a failed run, and what stays of either."""

import json

import pytest

from training.attempts.attempt import run_attempt
from training.attempts.progress import StopAsked
from training.errors import BadInput, EngineError
from training.rundir import RunDir
from training.store import read_lines


def status(run_dir):
    return json.loads(run_dir.attempt(1).status.read_text())


def kinds(run_dir):
    return [event["kind"] for event, _ in read_lines(run_dir.attempt(1).events)]


def test_loading_is_told_before_it_begins_and_the_start_after(tmp_path):
    run_dir, told = RunDir(tmp_path), []

    def prepare(progress):
        told.append(status(run_dir))
        return "loaded"

    def go(prepared, progress):
        told.append((prepared, status(run_dir)["phase"]))
        return "succeeded", ""

    found = run_attempt(run_dir, None, prepare, go, steps=7, found=(3, tmp_path / "step_000003"))
    assert (told[0]["phase"], told[0]["step"], told[0]["steps"]) == ("loading", 3, 7)
    assert told[1] == ("loaded", "starting")
    assert found == {"result": "succeeded", "why": "", "step": 3, "attempt": 1, "exit": 0}
    assert kinds(run_dir) == ["started", "finished"]


@pytest.mark.parametrize("supervised", [False, True])
def test_wrong_input_is_raised_and_leaves_nothing_behind(tmp_path, supervised):
    run_dir = RunDir(tmp_path / "run")
    if supervised:  # whoever started us keeps a log there already
        run_dir.attempt(1).root.mkdir(parents=True)
        run_dir.attempt(1).log.touch()

    def prepare(progress):
        raise BadInput("no such model", "model.base")

    with pytest.raises(BadInput):
        run_attempt(run_dir, 1, prepare, lambda *_: ("succeeded", ""))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["log.txt"] * supervised
    assert (tmp_path / "run").exists() == supervised


@pytest.mark.parametrize("error", [EngineError("out of memory"), RuntimeError("out of memory")])
@pytest.mark.parametrize("late", [False, True], ids=["while loading", "under way"])
def test_every_other_failure_is_a_failed_run(tmp_path, error, late):
    def fail(*_):
        raise error

    run_dir = RunDir(tmp_path)
    found = run_attempt(run_dir, None, (lambda _: None) if late else fail, fail)
    assert (found["result"], found["exit"]) == ("failed", 1)
    assert "out of memory" in found["why"]
    assert (status(run_dir)["phase"], status(run_dir)["result"]) == ("finished", "failed")
    assert kinds(run_dir) == [*(["started"] if late else []), "error", "finished"]
    assert "out of memory" in run_dir.attempt(1).log.read_text()


def test_a_stop_is_no_failure(tmp_path):
    def go(_, progress):
        progress.stop("signal SIGINT")
        raise StopAsked(progress.reason)

    found = run_attempt(RunDir(tmp_path), 4, lambda _: None, go)
    assert (found["result"], found["why"], found["attempt"], found["exit"]) == ("stopped", "signal SIGINT", 4, 130)
