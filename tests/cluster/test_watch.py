"""What a driver needs of its Ray is missed within seconds, and the driver can leave it and start another."""

import os
import signal
import socket
import subprocess
import time

import psutil
import pytest

from training.cluster import watch
from training.cluster.processes import PREFIX, start
from training.cluster.watch import Watch
from training.errors import ProcessLost

pytestmark = pytest.mark.process


def until_lost(seconds):
    began = time.monotonic()
    while not watch.lost():
        assert time.monotonic() - began < seconds
        time.sleep(0.05)


@pytest.mark.parametrize("part, named", [("raylet", "the raylet of this run"), ("gcs_server", "the GCS of this run")])
def test_a_part_of_ray_that_was_killed_is_named_and_nothing_of_it_is_left(part, named):
    with start() as cluster:
        import ray

        watch.check()
        node = ray._private.worker._global_node
        pid = node.all_processes[part][0].process.pid
        children = psutil.Process().children(recursive=True)
        os.kill(pid, signal.SIGKILL)
        until_lost(5.0)
        with pytest.raises(ProcessLost, match=rf"{named}.* \(process {pid} on {socket.gethostname()}\) died"):
            watch.check()
    watch.check()  # what was left is no loss
    assert not cluster.folder.exists()
    _, alive = psutil.wait_procs([child for child in children if PREFIX in " ".join(_line(child))], timeout=10)
    assert not alive
    with start():
        watch.check()


def _line(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_head_that_is_not_reached_for_long_is_named(monkeypatch):
    monkeypatch.setattr(watch, "HEAD_PAUSE_S", 0.2)
    monkeypatch.setattr(watch, "HEAD_SILENCE_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        watching = Watch({}, address)
        time.sleep(2.0)
        assert not watching.lost
    began = time.monotonic()
    while not watching.lost:
        assert time.monotonic() - began < 10
        time.sleep(0.05)
    assert watching.lost.startswith(f"the head of the Ray cluster at {address} has not answered for ")


def test_what_ends_after_the_driver_has_left_is_no_loss():
    process = subprocess.Popen(["sleep", "60"])
    watching = Watch({"the raylet": psutil.Process(process.pid)})
    watching.stop()
    process.kill()
    process.wait()
    time.sleep(1.2)
    assert not watching.lost
