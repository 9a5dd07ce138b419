"""An attempt from its preparation to its end: raised errors, failed runs, and the files that remain."""

import json
import os
import subprocess
import time

import pytest

from training.attempts import lock
from training.attempts.attempt import run_attempt
from training.attempts.lock import hold
from training.attempts.progress import StopRequested
from training.errors import BadInput, EngineError, ProcessLost
from training.rundir import RunDir
from training.store import atomic_directory, read_lines, write_json


def status(run_dir):
    return json.loads(run_dir.attempt(1).status.read_text())


def kinds(run_dir, attempt=1):
    return [event["kind"] for event, _ in read_lines(run_dir.attempt(attempt).events)]


def test_loading_is_reported_before_it_begins_and_the_start_after(tmp_path):
    run_dir, statuses = RunDir(tmp_path), []

    with atomic_directory(run_dir.attempt(1).checkpoint(3)) as folder:
        (folder / "weights").touch()

    def prepare(progress, newest):
        statuses.append(json.loads(run_dir.attempt(2).status.read_text()))
        return newest

    def go(prepared, progress):
        statuses.append((prepared, json.loads(run_dir.attempt(2).status.read_text())["phase"]))
        return "succeeded", ""

    result = run_attempt(run_dir, None, prepare, go, steps=7)
    assert (statuses[0]["phase"], statuses[0]["step"], statuses[0]["steps"]) == ("loading", 3, 7)
    assert statuses[1] == ((3, run_dir.attempt(1).checkpoint(3)), "starting")
    assert result == {"result": "succeeded", "why": "", "step": 3, "attempt": 2, "exit": 0}
    assert kinds(run_dir, 2) == ["started", "finished"]


@pytest.mark.parametrize("supervised", [False, True])
def test_wrong_input_is_raised_and_leaves_nothing_behind(tmp_path, supervised):
    run_dir = RunDir(tmp_path / "run")
    if supervised:  # whoever started us keeps a log there already
        run_dir.attempt(1).root.mkdir(parents=True)
        run_dir.attempt(1).log.touch()

    def prepare(progress, newest):
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
    result = run_attempt(run_dir, None, (lambda *_: None) if late else fail, fail)
    assert (result["result"], result["exit"]) == ("failed", 1)
    assert "out of memory" in result["why"]
    assert (status(run_dir)["phase"], status(run_dir)["result"]) == ("finished", "failed")
    assert kinds(run_dir) == [*(["started"] if late else []), "error", "finished"]
    log = run_dir.attempt(1).log.read_text()
    assert log.count("the run failed: ") == 1
    assert ("Traceback" in log) == isinstance(error, RuntimeError)  # the other was raised on purpose


def test_an_attempt_that_loses_a_process_is_interrupted_with_the_reason(tmp_path):
    def fail(*_):
        raise ProcessLost("learner rank 1 died while learning")

    run_dir = RunDir(tmp_path)
    result = run_attempt(run_dir, None, lambda *_: None, fail)
    assert (result["result"], result["why"], result["exit"]) == (
        "interrupted",
        "learner rank 1 died while learning",
        1,
    )
    assert (status(run_dir)["result"], status(run_dir)["why"]) == ("interrupted", result["why"])
    assert kinds(run_dir) == ["started", "finished"]
    assert "interrupted: learner rank 1 died while learning" in run_dir.attempt(1).log.read_text()


def test_a_stop_is_no_failure(tmp_path):
    def go(_, progress):
        progress.stop("signal SIGINT")
        raise StopRequested(progress.reason)

    result = run_attempt(RunDir(tmp_path), 4, lambda *_: None, go)
    assert (result["result"], result["why"], result["attempt"], result["exit"]) == ("stopped", "signal SIGINT", 4, 130)


def test_folders_that_a_supervisor_did_not_make_do_not_count(tmp_path):
    run_dir, steps = RunDir(tmp_path), []

    def prepare(progress, newest):
        steps.append(newest and newest[0])
        with atomic_directory(progress.attempt.checkpoint(progress.step + 10)) as folder:
            (folder / "weights").touch()

    for _ in range(2):
        run_attempt(run_dir, None, prepare, lambda *_: ("succeeded", ""))
    write_json(run_dir.ignored, {"attempts": [2]})
    run_attempt(run_dir, None, prepare, lambda *_: ("succeeded", ""))
    assert steps == [None, 10, 10]
    assert (run_dir.attempts(), run_dir.folders()) == ([1, 3], [1, 2, 3])


def test_a_run_that_another_process_works_on_is_refused(tmp_path):
    run_dir = RunDir(tmp_path)
    with hold(run_dir, 1):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(BadInput, match="is working on this run"):
            run_attempt(run_dir, None, lambda *_: None, lambda *_: ("succeeded", ""))
        assert sorted(tmp_path.rglob("*")) == before
    assert sorted(tmp_path.rglob("*")) == []


def test_an_attempt_whose_lock_is_taken_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT_S", 0.05)
    run_dir = RunDir(tmp_path)

    def go(_, progress):
        later = run_attempt(run_dir, 2, lambda *_: None, lambda *_: ("succeeded", ""), supervised=True)
        assert later["result"] == "succeeded"
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            progress.check()
            time.sleep(0.02)
        return "succeeded", ""

    result = run_attempt(run_dir, 1, lambda *_: None, go, supervised=True)
    assert (result["result"], "taken over" in result["why"]) == ("stopped", True)


def test_what_a_killed_attempt_was_saving_is_deleted(tmp_path):
    run_dir, dead = RunDir(tmp_path), subprocess.Popen(["true"])
    dead.wait()
    folder = run_dir.attempt(1).root / "checkpoints"
    left, of_another = folder / f".step_000002.tmp-{dead.pid}", folder / f".step_000003.tmp-{os.getppid()}"
    for each in (left, of_another):
        each.mkdir(parents=True)
        (each / "weights").touch()
    run_attempt(run_dir, None, lambda *_: None, lambda *_: ("succeeded", ""))
    assert [*folder.iterdir()] == [of_another], "whose process lives"
