"""A run on several processes from a shell: its driver is a child, which is started again when it is interrupted."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from training.cli import resuming
from training.errors import BadInput
from training.rundir import RunDir
from training.store import read_lines

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]
STAND_IN = """
import json, os, signal, sys, time
from training.attempts.attempt import run_attempt
from training.errors import BadInput, ProcessLost
from training.rundir import RunDir
from training.store import atomic_directory

def save(progress, step):
    with atomic_directory(progress.attempt.checkpoint(step)) as folder:
        (folder / "weights").touch()

def go(_, progress):
    deed = deeds[int(progress.attempt.root.name) - 1]
    if deed == "wait":
        while True:
            progress.check()
            time.sleep(0.05)
    for word in deed.split():
        if word.isdigit():
            progress.step = int(word)
            save(progress, int(word))
        elif word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "lose":
            raise ProcessLost("learner rank 1 died")
        elif word == "fail":
            raise RuntimeError("out of memory")
    return "succeeded", ""

def prepare(progress, _):
    deed = deeds[int(progress.attempt.root.name) - 1]
    if deed == "refuse":
        raise BadInput("no such model", "model.base")
    if deed == "load":
        time.sleep(60)

deeds = json.loads(sys.argv[1])
try:
    result = run_attempt(RunDir(__import__("pathlib").Path(sys.argv[2])), None, prepare, go)
except BadInput as error:
    print(json.dumps({"error": {"kind": "input", "where": error.where, "why": error.why}}))
    sys.exit(2)
code = result.pop("exit")
print(json.dumps(result))
sys.exit(code)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a stand-in of the driver: each of its attempts does what one entry of a list says."""

    def start(*deeds):
        command = [sys.executable, "-c", STAND_IN, json.dumps(deeds), str(tmp_path)]
        monkeypatch.setattr(resuming, "_command", lambda run_dir, attempt: command)
        return resuming.run_to_the_end(RunDir(tmp_path), None)

    return start


def reasons(folder, attempt):
    return [e["why"] for e, _ in read_lines(RunDir(folder).attempt(attempt).events) if e["kind"] == "interrupted"]


def test_an_interrupted_attempt_is_followed_by_others_until_the_end(run, tmp_path, caplog):
    assert run("1 lose", "2 die", "3") == {"result": "succeeded", "why": "", "step": 3, "attempt": 3, "exit": 0}
    assert reasons(tmp_path, 1) == ["learner rank 1 died"]
    [killed] = reasons(tmp_path, 2)
    assert killed.startswith("the driver (process ")
    assert killed.endswith(") was killed by signal SIGKILL in phase starting")
    assert "attempt 1 was interrupted: learner rank 1 died" in caplog.text
    events = [event for number in (1, 2, 3) for event, _ in read_lines(RunDir(tmp_path).attempt(number).events)]
    assert [event["step"] for event in events if event["kind"] == "started"] == [0, 1, 2]


def test_three_attempts_in_a_row_without_a_new_checkpoint_fail_the_run(run):
    result = run("lose", "1 lose", "lose", "die", "lose", "2")
    assert (result["result"], result["attempt"], result["exit"]) == ("failed", 5, 1)
    assert result["why"] == "3 attempts in a row died without a new checkpoint. The last: learner rank 1 died"


def test_a_failure_that_is_no_lost_process_is_not_repeated(run):
    result = run("1 fail", "2")
    assert (result["result"], result["attempt"], result["exit"]) == ("failed", 1, 1)


def test_wrong_input_of_the_child_is_raised(run, tmp_path):
    with pytest.raises(BadInput) as caught:
        run("refuse")
    assert (caught.value.where, caught.value.why) == ("model.base", "no such model")


def ended(folder, attempt):
    """How an attempt ended, by its status and its last event."""
    files = RunDir(folder).attempt(attempt)
    status, events = json.loads(files.status.read_text()), [event for event, _ in read_lines(files.events)]
    assert status["phase"] == events[-1]["kind"] == "finished"
    assert status["result"] == events[-1]["result"]
    return status["result"]


STOPS = pytest.mark.parametrize("number, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130)])


@STOPS
def test_a_stop_between_two_attempts_ends_the_run_as_stopped(run, tmp_path, monkeypatch, number, code):
    monkeypatch.setattr(resuming, "delete_leftovers", lambda: os.kill(os.getpid(), number))
    stopped = {"result": "stopped", "why": f"signal {number.name}", "step": 1, "attempt": 1, "exit": code}
    assert run("1 lose", "2") == stopped
    assert RunDir(tmp_path).folders() == [1]
    assert ended(tmp_path, 1) == "stopped"


@STOPS
def test_a_stop_while_an_attempt_loads_ends_the_run_as_stopped(run, tmp_path, number, code):
    def stop():
        while not RunDir(tmp_path).attempt(2).status.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    threading.Thread(target=stop, daemon=True).start()
    result = run("1 lose", "load")
    assert (result["result"], result["step"], result["attempt"], result["exit"]) == ("stopped", 1, 2, code)
    assert ended(tmp_path, 2) == "stopped"


def test_a_stop_while_a_driver_is_being_started_is_not_lost(run, tmp_path, monkeypatch):
    popen = subprocess.Popen

    def start(*arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return popen(*arguments, **options)

    monkeypatch.setattr(resuming.subprocess, "Popen", start)
    result = run("1", "2")
    assert (result["result"], result["step"], result["exit"]) == ("stopped", 0, 0)


IMPORTING = """
import sys, time
open(sys.argv[2] + "/importing", "w").close()
time.sleep(2)
"""


def test_an_input_that_ends_while_a_driver_is_being_started_is_not_lost(tmp_path):
    """A driver that imports its libraries has not looked at its own input yet."""
    command = [sys.executable, "-c", PARENT, IMPORTING + STAND_IN, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while not (tmp_path / "importing").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    result = json.loads(process.communicate(timeout=20)[0])
    assert (result["result"], result["why"]) == ("stopped", "the supervisor closed standard input")


PARENT = """
import json, sys
from training.cli import resuming
from training.rundir import RunDir
from training.supervised import held_input
held_input()
command = [sys.executable, "-c", sys.argv[1], '["wait", "2"]', sys.argv[2]]
resuming._command = lambda run_dir, attempt: command
print(json.dumps(resuming.run_to_the_end(RunDir(__import__("pathlib").Path(sys.argv[2])), None)))
"""


@pytest.mark.parametrize("how, code", [(signal.SIGINT, 130), (signal.SIGTERM, 0), ("input", 0)])
def test_a_stop_reaches_the_child_once_and_ends_the_run(tmp_path, how, code):
    command = [sys.executable, "-c", PARENT, STAND_IN, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    files = RunDir(tmp_path).attempt(1)
    deadline = time.monotonic() + 20
    while not files.events.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    held, process.stdin = process.stdin, None  # else `communicate` closes it
    held.close() if how == "input" else os.kill(process.pid, how)
    result = json.loads(process.communicate(timeout=20)[0])
    assert (result["result"], result["attempt"], result["exit"]) == ("stopped", 1, code)
    held.close()
