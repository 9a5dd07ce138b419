"""Each process of a run is killed in turn: all of them end, the command goes on by itself, the result is the same."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from tests.cluster.two_nodes import add_node, lose_node, two_nodes
from tests.learn.small_runs import make_run
from tests.learn.spread_runs import same, same_line, spread
from training.cluster.processes import PREFIX
from training.learn.trainer import run
from training.store import loads, read_lines

pytestmark = [pytest.mark.process, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 600
TWO_LEASES_S = 60


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    config, run_dir = make_run(tmp_path_factory.mktemp("undisturbed"), steps=4)
    assert run(config, run_dir)["result"] == "succeeded"
    return run_dir


@contextlib.contextmanager
def command(run_dir):
    """The command on a run, which takes it to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    process = subprocess.Popen(
        [sys.executable, "-m", "training", "resume", str(run_dir.root), "--json"],
        cwd=ROOT,
        env={**environment, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def once(ready, seconds=LIMIT_S):
    deadline = time.monotonic() + seconds
    while not (value := ready()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def victim(part, driver, run_dir):
    """The process to kill: the heartbeat names engines and ranks, and Ray's parts are below the driver."""
    if part == "driver":
        return driver
    if part in ("engine 1", "learner 1"):
        status = loads(run_dir.attempt(1).status.read_text())
        [pid] = [process["pid"] for process in status["processes"] if process["name"] == part]
        return psutil.Process(pid)
    return next(process for process in driver.children(recursive=True) if process.name().startswith(part))


def lines(run_dir):
    """The metrics of all attempts, without times and without what a later attempt did again."""
    by_step = {}
    for number in run_dir.attempts():
        for line, _ in read_lines(run_dir.attempt(number).metrics):
            kept = {name: value for name, value in line.items() if name != "at" and not name.endswith("_s")}
            by_step[line["step"]] = kept
    return [by_step[step] for step in sorted(by_step)]


def reasons(run_dir, attempt):
    return [line["why"] for line, _ in read_lines(run_dir.attempt(attempt).events) if line["kind"] == "interrupted"]


@pytest.mark.parametrize(
    "part, reason",
    [
        ("driver", r"the driver \(process {pid}\) was killed by signal SIGKILL in phase "),
        ("engine 1", ""),
        ("learner 1", r"learner rank 1 \(process {pid} on "),
        # Ray ends the driver a moment later, perhaps before that has said why
        ("raylet", r"the raylet of this run \(process {pid} on |the driver \(process \d+\) ended with code 1 "),
        ("gcs_server", r"the GCS of this run's Ray \(process {pid} on "),
    ],
)
def test_after_any_process_was_killed_the_run_goes_on_to_the_same_result(undisturbed, tmp_path, part, reason):
    each = 2 if part.endswith("1") else 1
    several = spread(undisturbed, tmp_path, engines=each, learners=each, address="local")
    with command(several) as process:
        once(several.latest_checkpoint)
        [driver] = psutil.Process(process.pid).children()
        started = [driver, *driver.children(recursive=True)]
        dying = victim(part, driver, several)
        dying.send_signal(signal.SIGKILL)
        if reason:
            _, alive = psutil.wait_procs(started, timeout=TWO_LEASES_S)
            assert not alive, "what the driver started has ended"
        result = json.loads(process.communicate(timeout=LIMIT_S)[0])
    assert (result["result"], result["step"], result["attempt"]) == ("succeeded", 4, 2 if reason else 1), result
    if reason:
        [why] = reasons(several, 1)
        assert re.match(reason.format(pid=dying.pid), why), why
    same_as(undisturbed, several)
    assert not list(Path(tempfile.gettempdir()).glob(f"{PREFIX}{driver.pid}-*")), "no file is left"


@pytest.mark.parametrize(
    "cpus, head_cpus, attempts",
    [
        pytest.param(3, 0, 2, id="all processes, and the newest weights"),
        pytest.param(1, 2, 2, id="the rank"),
        pytest.param(2, 1, 1, id="both engines"),
    ],
)
def test_after_a_node_was_lost_the_run_goes_on_with_another(undisturbed, tmp_path, cpus, head_cpus, attempts):
    """Raylets of this machine stand for nodes. The one that is lost is not the head, and has no room to spare."""
    with two_nodes(cpus, head_cpus) as nodes:
        several = spread(undisturbed, tmp_path, engines=2, learners=1, address=nodes.address)
        with command(several) as process:
            once(several.latest_checkpoint)
            lose_node(nodes)
            add_node(nodes, cpus)
            result = json.loads(process.communicate(timeout=LIMIT_S)[0])
    assert (result["result"], result["step"], result["attempt"]) == ("succeeded", 4, attempts), result
    same_as(undisturbed, several)


def same_as(undisturbed, several):
    for expected, line in zip(lines(undisturbed), lines(several), strict=True):
        same_line(line, expected, heads=1e-2)  # which have seen few steps and predict by small differences
    same(undisturbed.checkpoint_of(4), several.checkpoint_of(4))
