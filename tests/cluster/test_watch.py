"""What a driver needs of its Ray is missed within seconds, and the driver can leave it and start another."""

import os
import re
import signal
import socket
import subprocess
import time
from dataclasses import replace

import psutil
import pytest

from tests.cluster.two_nodes import lose_node, two_nodes
from training.cluster import watch
from training.cluster.processes import PREFIX, start
from training.cluster.watch import ClusterMonitor
from training.errors import OutsideError, ProcessLost

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


class StandIn:
    """The head of a joined cluster: does what each entry of a list says, the last one for ever."""

    def __init__(self, *answers):
        self.answers = [*answers]

    def __str__(self):
        return "the head"

    def left(self):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def impatient(monkeypatch):
    for name, seconds in {"PAUSE_S": 0.05, "HEAD_PAUSE_S": 0.1, "HEAD_SILENCE_S": 1.0}.items():
        monkeypatch.setattr(watch, name, seconds)


def what_was_lost(monitor, seconds=10):
    began = time.monotonic()
    while not monitor.lost:
        assert time.monotonic() - began < seconds
        time.sleep(0.02)
    return monitor.lost


def test_a_head_that_is_not_reached_for_long_is_named(impatient):
    silent = OutsideError("connection refused")
    began = time.monotonic()
    lost = what_was_lost(ClusterMonitor({}, StandIn("", silent, "", silent)))
    assert re.fullmatch(r"the head has not answered for \d s", lost)
    assert time.monotonic() - began > 1.0


def test_a_head_that_answers_now_and_then_is_no_loss(impatient):
    silent = OutsideError("connection refused")
    monitor = ClusterMonitor({}, StandIn(*[silent, silent, ""] * 20))
    time.sleep(3.0)
    assert not monitor.lost
    monitor.stop()


def test_a_driver_that_is_no_longer_part_of_the_cluster_learns_why(impatient):
    assert (
        what_was_lost(ClusterMonitor({}, StandIn("", "", "it is another cluster now"))) == "it is another cluster now"
    )


def test_a_monitor_that_fails_itself_reports_it(impatient):
    lost = what_was_lost(ClusterMonitor({}, StandIn("", ValueError("no such id"))))
    assert lost == "Ray can no longer be monitored: ValueError: no such id"


def test_a_loss_that_cannot_be_recorded_is_one(impatient, monkeypatch):
    def full(why):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watch, "_listeners", [full])
    assert what_was_lost(ClusterMonitor({}, StandIn("gone"))) == "gone"


def test_the_head_is_asked_for_the_id_of_its_cluster_and_for_this_node():
    """A head that was started again has another id; a raylet in another container may be dead without being seen."""
    with two_nodes(cpus=1) as nodes, start(nodes.address):
        head = watch.head_of(nodes.address, "RAY_ADDRESS")
        assert head.left() == ""
        assert replace(head, cluster_id="0" * 56).left() == (
            "the head of the Ray cluster at RAY_ADDRESS was started again: it is another cluster now"
        )
        [worker] = nodes.worker_nodes
        other = replace(head, node_id=worker.node_id)
        assert other.left() == ""
        lose_node(nodes)
        began = time.monotonic()
        while not (why := other.left()):
            assert time.monotonic() - began < 60
            time.sleep(0.5)
        assert why.startswith("the head of the Ray cluster at RAY_ADDRESS has given up this node (")
        with socket.create_server(("127.0.0.1", 0)) as server:
            free = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OutsideError, match="ConnectionRefusedError"):
            replace(head, address=free).left()


def test_what_ends_after_the_driver_has_left_is_no_loss():
    process = subprocess.Popen(["sleep", "60"])
    watching = ClusterMonitor({"the raylet": psutil.Process(process.pid)})
    watching.stop()
    process.kill()
    process.wait()
    time.sleep(1.2)
    assert not watching.lost
