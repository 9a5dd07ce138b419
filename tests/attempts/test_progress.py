"""Heartbeat, metrics, events, episodes, and control requests."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context

import pytest

import training.attempts.progress as progress_module
from training.attempts.progress import Progress, StopRequested, logging_to, rounded
from training.config import RunConfig
from training.errors import ProcessLost
from training.rundir import AttemptDir, RunDir
from training.store import read_lines, read_member
from training.supervised import held_input


@pytest.fixture
def progress(tmp_path):
    return Progress(AttemptDir(tmp_path / "0001"), steps=9, step=2)


def status(progress):
    return json.loads(progress.attempt.status.read_text())


def lines(path):
    return [line for line, _ in read_lines(path)]


def test_the_heartbeat_has_phase_step_and_time(progress):
    progress.phase("sampling", done=0, of=4)
    first = status(progress)
    assert {k: first[k] for k in ("phase", "step", "steps", "pid", "done", "of")} == {
        "phase": "sampling", "step": 2, "steps": 9, "pid": os.getpid(), "done": 0, "of": 4,
    }  # fmt: skip
    assert abs(first["at"] - time.time()) < 5
    progress.phase("learning")
    assert "done" not in status(progress)


def test_the_heartbeat_has_what_is_wrong_with_the_nodes_of_other_processes(progress):
    progress.phase("sampling")
    assert "warnings" not in status(progress)
    progress.processes, progress.warnings = list, ["the clock of n2 is off"]
    progress.phase("learning")
    assert status(progress)["warnings"] == ["the clock of n2 is off"]


async def test_what_is_awaited_ends_when_a_process_is_gone(progress):
    """It may be one that plays, while a rank is gone."""
    ended = []

    async def games():
        try:
            await asyncio.sleep(60.0)
        finally:
            ended.append(True)

    def lost():
        raise ProcessLost("learner rank 0 died")

    progress.check_processes = lost
    with pytest.raises(ProcessLost, match="rank 0"):
        await asyncio.wait_for(progress.unless_stopped(games()), 10.0)
    assert ended
    assert await progress.unless_stopped(asyncio.sleep(0, "what is done stays so")) == "what is done stays so"


def test_the_heartbeat_says_since_when_a_phase_lasts(progress, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    progress.phase("sampling", done=0, of=4)
    clock[0] += 30
    progress.beat(done=1)
    assert (status(progress)["since"], status(progress)["at"]) == (1000.0, 1030.0)
    progress.phase("scoring")
    assert status(progress)["since"] == 1030.0


def test_beats_are_not_written_more_often_than_they_can_be_read(progress, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    progress.phase("sampling")
    progress.beat(done=1)
    assert "done" not in status(progress)
    clock[0] += 1
    progress.beat(of=2)
    assert (status(progress)["done"], status(progress)["of"]) == (1, 2)


def test_metrics_that_are_not_finite_are_reported_and_left_out(progress):
    progress.metrics(3, {"loss": 1.5, "kl": float("nan"), "gap": float("inf")})
    [line] = lines(progress.attempt.metrics)
    assert {k: v for k, v in line.items() if k != "at"} == {"step": 3, "loss": 1.5}
    [event] = lines(progress.attempt.events)
    assert (event["kind"], event["why"]) == ("warning", "not finite: gap, kl")


def test_episodes_are_found_by_their_line_in_the_index(progress):
    for number in range(3):
        progress.episode(5, number, {"number": number, "text": "é" * number}, {"turns": number})
    index = lines(progress.attempt.index)
    assert [(line["step"], line["episode"], line["summary"]) for line in index] == [
        (5, n, {"turns": n}) for n in range(3)
    ]
    line = index[1]
    path = progress.attempt.root / "episodes" / line["file"]
    assert read_member(path, line["offset"], line["length"]) == {"number": 1, "text": "é"}


def test_finish_is_the_last_word(progress):
    progress.finish("stopped", "asked")
    assert (status(progress)["phase"], status(progress)["result"]) == ("finished", "stopped")
    assert lines(progress.attempt.events)[-1]["kind"] == "finished"


def test_a_stop_counts_once_and_keeps_its_first_reason(progress):
    progress.check()
    progress.attempt.ask("stop")
    with pytest.raises(StopRequested, match="control/stop"):
        progress.check()
    progress.stop("too late")
    assert progress.reason == "asked by control/stop"


def test_a_save_is_taken_once(progress):
    assert not progress.take_save()
    progress.attempt.ask("save")
    assert progress.take_save()
    assert not progress.take_save()


def test_signals_ask_first_and_act_as_usual_the_second_time(progress):
    before = signal.getsignal(signal.SIGINT)
    with progress.listening():
        os.kill(os.getpid(), signal.SIGINT)
        assert progress.stopping
        assert progress.reason == "signal SIGINT"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


LISTENER = """
import sys, time
from pathlib import Path
import training.attempts.progress as module
from training.rundir import AttemptDir
module.GRACE_S = 1.0
progress = module.Progress(AttemptDir(Path(sys.argv[1])), steps=1)
with progress.listening():
    print("ready", flush=True)
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end and not (progress.stopping and sys.argv[3] == "polite"):
        time.sleep(0.02)
print(progress.reason, flush=True)
"""


def listener(tmp_path, seconds, manners, stdin):
    return subprocess.Popen(
        [sys.executable, "-c", LISTENER, str(tmp_path / "attempt"), str(seconds), manners],
        stdin=stdin, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_the_end_of_an_open_pipe_requests_a_stop(tmp_path):
    process = listener(tmp_path, 30, "polite", subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    process.stdin.close()
    assert process.stdout.readline() == "the supervisor closed standard input\n"
    assert process.wait(10) == 0


def test_a_process_that_cannot_stop_is_ended(tmp_path):
    process = listener(tmp_path, 60, "deaf", subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    began = time.monotonic()
    process.stdin.close()
    assert process.wait(20) == 1
    assert time.monotonic() - began < 10


def load(module, name, when, folder, stdin, hold, report):
    """Run, in a child, what never finishes loading; `early` looks at its standard input long before."""
    os.close(hold)
    os.dup2(stdin, 0)
    sys.stdin = os.fdopen(0, closefd=False)
    held_input.cache_clear()
    progress_module.GRACE_S = 1.0
    if when == "early":
        held_input()
        os.write(report, b"asked\n")
        time.sleep(2.0)
    runner = import_module(module)
    setattr(runner, name, lambda *_, **__: (os.write(report, b"loading\n"), time.sleep(60)))
    runner.run(RunConfig(), RunDir(folder))


@contextmanager
def loading(tmp_path, module, name, when):
    """Fork `load`, as a new process imports for eight seconds; yield it, the pipe to its input, and what it says."""
    import_module(module)
    (stdin, hold), (words, report) = os.pipe(), os.pipe()
    if when == "alone":
        os.close(stdin)
        stdin = os.open(os.devnull, os.O_RDONLY)
    process = get_context("fork").Process(target=load, args=(module, name, when, tmp_path, stdin, hold, report))
    process.start()
    os.close(stdin)
    os.close(report)
    try:
        with os.fdopen(words) as lines_, os.fdopen(hold, "w") as pipe:
            yield process, pipe, lines_
    finally:
        process.kill()
        process.join()


RUNNERS = [
    ("training.learn.trainer", "build"),
    ("training.learn.sft.cold_start", "ColdStart"),
    ("training.evaluate.run", "HeadToHead"),
]


@pytest.mark.parametrize("module, name", RUNNERS)
def test_the_end_of_an_open_pipe_ends_a_process_that_still_loads(tmp_path, module, name):
    with loading(tmp_path, module, name, "late") as (process, pipe, words):
        assert words.readline() == "loading\n"
        pipe.close()
        process.join(20)
        assert process.exitcode == 1


def test_a_pipe_that_ends_before_loading_counts_as_open(tmp_path):
    with loading(tmp_path, *RUNNERS[0], "early") as (process, pipe, words):
        assert words.readline() == "asked\n"
        pipe.close()
        process.join(40)
        assert process.exitcode == 1


def test_without_standard_input_loading_continues(tmp_path):
    with loading(tmp_path, *RUNNERS[0], "alone") as (process, _, words):
        assert words.readline() == "loading\n"
        process.join(3)
        assert process.is_alive()


def test_the_command_line_watches_its_input_before_it_imports_torch():
    code = (
        "import sys\nfrom argparse import Namespace\nfrom pathlib import Path\n"
        "from training.cli import runs\nfrom training.errors import BadInput\n"
        "runs.held_input = lambda: print('torch' in sys.modules)\n"
        "try:\n    runs.main(Namespace(dir=Path('/nowhere'), resume=True, attempt=1))\nexcept BadInput:\n    pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_missing_standard_input_is_no_stop_request(tmp_path):
    reader, writer = os.pipe()
    os.close(writer)  # a pipe that was at its end before we looked
    for stdin in (subprocess.DEVNULL, reader):
        process = listener(tmp_path, 0.5, "polite", stdin)
        assert process.communicate(timeout=20)[0] == "ready\n\n"
    os.close(reader)


def test_the_log_is_kept_beside_the_run(progress):
    with logging_to(progress):
        logging.getLogger("training.somewhere").info("hello")
    logging.getLogger("training.somewhere").info("later")
    text = progress.attempt.log.read_text()
    assert "INFO training.somewhere: hello" in text
    assert "later" not in text


def test_rounded():
    import numpy as np

    assert rounded(np.array([0.123456789, np.nan, -1.0])) == [0.12346, 0.0, -1.0]
