"""What the log says of a process that has ended: which one, how as far as Ray knows, and what follows."""

import logging

import pytest
import ray
from ray.core.generated.common_pb2 import ActorDiedErrorContext

from training.cluster import supervisor
from training.cluster.supervisor import Process, ProcessOptions, Supervisor, how_it_ended
from training.cluster.worker import Started, Worker

KILLED = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker "
    "unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was "
    "killed by the OOM killer due to high memory usage, (2) ray stop --force was called, or (3) the worker crashed"
)
"""What Ray 2.60 says after SIGKILL, SIGABRT and `os._exit(3)` alike."""
TERMINATED = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker "
    "exits unexpectedly. Worker exits with an exit code 1."
)


def died(message):
    context = ActorDiedErrorContext(class_name="EngineActor", actor_id=b"\1" * 16, pid=7, error_message=message)
    return ray.exceptions.ActorDiedError(context)


def failed_to_be_made(cause):
    """The error of an actor whose constructor raised `cause`."""
    lines = f'ray::EngineActor.__init__() (pid=7)\n  File "actor.py", line 1\n{type(cause).__name__}: {cause}'
    return ray.exceptions.RayTaskError("EngineActor.__init__", lines, cause, actor_id="a")


@pytest.mark.parametrize(
    "error, how",
    [
        (died(KILLED), "it crashed, or was killed by a signal, as by SIGKILL where a machine runs out of memory"),
        (died(f"{TERMINATED} The process receives a SIGTERM."), "it received SIGTERM"),
        (died(TERMINATED), "it exited with code 1"),
        (died("The actor died because its node has died. Node Id: 0f"), "its node died, or cannot be reached"),
        (ray.exceptions.NodeDiedError("lost"), "its node died, or cannot be reached"),
        (
            ray.exceptions.OutOfMemoryError("Task was killed due to the node running low on memory."),
            "Ray ended it because its node was running out of memory",
        ),
        (ray.exceptions.ActorDiedError(), f"Ray says: {ray.exceptions.ActorDiedError.BASE_ERROR_MSG}"),
        (
            ray.exceptions.ActorDiedError(failed_to_be_made(OSError("10.0.0.7:6379 refuses"))),
            "it failed while it was made: OSError: ADDRESS refuses",
        ),
        (
            ray.exceptions.ActorUnavailableError("RPC error: Socket closed", b"\1" * 16),
            "neither it nor its node could be reached",
        ),
    ],
)
def test_how_a_process_ended_is_said_as_far_as_ray_knows(error, how):
    assert how_it_ended(error) == how


@pytest.fixture
def watching(monkeypatch):
    """Make a supervisor that watches one process, without a Ray; `ended` has what it reports."""
    ended = []

    def make(*, together=False, started=True):
        options = ProcessOptions(lease_s=1.0)
        watching = Supervisor(Worker, "engine", options, lambda *lost: ended.append(lost), together=together)
        watching.close()
        process = Process(1, "engine 1", None)
        if started:
            process.ready(Started(pid=7, node="node-a", device="cpu", window=64))
        watching._processes.append(process)
        return watching, process, ended

    monkeypatch.setattr(supervisor, "_kill", lambda actor: None)
    monkeypatch.setattr(supervisor, "_last_words", lambda started: "")
    return make


@pytest.mark.parametrize(
    "options, follows",
    [
        ({}, "; it is started again"),
        ({"together": True}, "; the others cannot continue without it"),
        ({"started": False}, ""),
    ],
)
def test_the_log_has_no_text_of_ray_and_says_what_follows(watching, caplog, options, follows):
    caplog.set_level(logging.INFO, "training")
    supervising, process, ended = watching(**options)
    supervising.lost(process, died(KILLED))
    [record] = caplog.records
    assert record.message == f"{process} is gone: {how_it_ended(died(KILLED))}{follows}"
    assert [lost for lost, _ in ended] == [process]


def test_the_text_of_ray_is_logged_for_debugging(watching, caplog):
    caplog.set_level(logging.DEBUG, "training")
    supervising, process, _ = watching()
    supervising.lost(process, died(KILLED))
    assert "class_name: EngineActor" in next(record.message for record in caplog.records if record.levelname == "DEBUG")
