"""What a process of a run measures of itself."""

import asyncio
import math
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from unittest.mock import Mock

import pytest

from training.cluster import worker
from training.cluster.supervisor import Process
from training.cluster.worker import Started, Worker

ROOT = Path(__file__).resolve().parents[2]


class Counting(Worker):
    steps = 3


class NVMLError(Exception):
    """As the library's own errors, which are no `RuntimeError`."""


@pytest.mark.parametrize("error", [NVMLError("not supported"), RuntimeError("no driver"), ImportError("no pynvml")])
def test_a_gpu_whose_use_cannot_be_measured_ends_no_process(monkeypatch, error):
    def fails(number):
        raise error

    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.utilization", fails)
    monkeypatch.setattr(worker, "device_of_process", lambda: "cuda:0")
    process = Counting("engine 0", math.inf)  # else its lease ends the process of the tests
    process._started(100)
    heartbeat = asyncio.run(process.heartbeat())
    assert (heartbeat.steps, heartbeat.gpu_busy) == (3, None)
    seen = Process(0, "engine 0", None, started=Started(100, "here", 7, "cuda:0"), heartbeat=heartbeat)
    assert seen.status("engine 0", "serving", "").gpu_busy is None


def test_workers_count_as_part_of_their_process():
    """The workers are a process that holds 64 MiB and computes, and one that is gone."""
    command = [sys.executable, "-c", "memory = bytearray(2**26)\nprint(flush=True)\nwhile True: pass"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as busy, subprocess.Popen(["true"]) as gone:
        gone.wait()
        busy.stdout.readline()

        class Split(Worker):
            steps = 0
            workers = (busy.pid, gone.pid)

        class Whole(Worker):
            steps = 0

        whole, split = Whole("engine 0", math.inf), Split("engine 1", math.inf)
        for process in (whole, split):
            asyncio.run(process.heartbeat())
        time.sleep(0.3)
        alone, both = (asyncio.run(process.heartbeat()) for process in (whole, split))
        busy.kill()
    assert both.rss_bytes - alone.rss_bytes > 2**26
    assert both.cores > alone.cores + 0.1


def test_a_process_states_how_it_counts_its_steps():
    with pytest.raises(TypeError, match="steps"):
        Worker("engine 0", 60.0)


def test_the_use_of_several_gpus_is_their_mean(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.utilization", [30, 50].__getitem__)
    assert worker.gpu_busy() == pytest.approx(0.4)


def test_errors_of_libraries_name_no_addresses():
    """Whoever sees a run reads them, also where alerts go."""
    process, outcome = Counting.__new__(Counting), Future()
    process._activities = []
    outcome.set_exception(RuntimeError("Connection closed by peer [10.0.0.5]:37337"))
    answer = asyncio.run(process._outcome("learning", outcome))
    assert str(answer.error) == "RuntimeError: Connection closed by peer [ADDRESS]:37337"


class Clock:
    """A clock on which sleeping takes as long as asked, and the first time so much longer."""

    def __init__(self, late):
        self.now, self.late = 0.0, late

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now, self.late = self.now + seconds + self.late, 0.0


class Ended(Exception):
    """The process has ended."""


@pytest.mark.parametrize("suspended_s, lived_s", [(0.0, 30), (500.0, 530)])
def test_a_process_that_was_suspended_itself_waits_for_its_driver_a_whole_lease_longer(
    monkeypatch, suspended_s, lived_s
):
    """What the driver has sent meanwhile is still to be read."""

    def end(code):
        raise Ended

    clock = Clock(suspended_s)
    monkeypatch.setattr(worker.threading, "Thread", Mock())
    monkeypatch.setattr(worker, "time", clock)
    monkeypatch.setattr(worker.os, "_exit", end)
    with pytest.raises(Ended):
        worker.Lease(30.0, "engine 0")._watch()
    assert lived_s < clock.now <= lived_s + 1


def test_a_model_class_is_imported_without_packages_that_nothing_here_uses_of_it():
    code = """
import sys
from training.cluster.worker import skip_unused
skip_unused()
from transformers import AutoModelForCausalLM
assert not {"sklearn", "scipy"} & {*sys.modules}
import sklearn.metrics
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
