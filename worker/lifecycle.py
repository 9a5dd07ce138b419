"""A worker's lifecycle: heartbeats, killing unsupervised processes, and orderly shutdown.

On shutdown `leaving` is set: supervising tasks ask their processes to save and leave, and queue their runs again.
"""

import logging
import os
import socket
import threading
import time
from typing import Any

from celery import signals
from django.conf import settings
from django.db import Error, close_old_connections

from webapp.core import pids
from webapp.core.models import Heartbeat, beat
from webapp.runs import local_files, services
from worker import processes

logger = logging.getLogger(__name__)
leaving = threading.Event()
BEAT_SECONDS = 5.0
HOUSEKEEPING_SECONDS = 20.0
_over = threading.Event()


def identity() -> str:
    """Return this worker's identity: host, process id and start time, so that a restarted worker has another."""
    started = pids.start_time(os.getpid()) or 0.0
    return f"{settings.NODE_NAME}:{os.getpid()}:{started:.2f}"


def is_alive(worker: str) -> bool:
    """Return whether the worker process of this host with that identity is alive."""
    _, pid, started = worker.rsplit(":", 2)
    return pids.same_process(int(pid), float(started), tolerance=0.5)


def about(queues: list[str], consumer: Any = None) -> dict[str, Any]:
    """The detail of this worker's heartbeat: queues, host, and how many models its node serves, if it serves any.

    Without a connection to the broker it serves no queue.
    """
    connected = consumer is None or bool(consumer.connection and consumer.connection.connected)
    place = {
        "queues": queues if connected else [],
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "node": settings.NODE_NAME,
    }
    return {**place, "serve_slots": settings.SERVE_SLOTS} if "serve" in queues else place


def _keep_beating(name: str, queues: list[str], consumer: Any) -> None:
    housekeeping_due = 0.0
    while not _over.is_set():
        try:
            beat(Heartbeat.Kind.WORKER, name, **about(queues, consumer))
            processes.reap(is_alive)
            if time.monotonic() >= housekeeping_due:
                housekeeping_due = time.monotonic() + HOUSEKEEPING_SECONDS
                keep_house()
        except Error:
            logger.warning("the database is away; trying again in %.0f s", BEAT_SECONDS)
        except Exception:  # the root of this thread: if it ended, a working worker would look dead
            logger.exception("beat failed")
        close_old_connections()
        _over.wait(BEAT_SECONDS)


def keep_house() -> None:
    """What only this machine can do: register the base models that it has, and delete what the site has."""
    services.register_bases()
    local_files.delete_leftovers()


def _ready(sender: Any, **_: Any) -> None:
    queues = sorted(queue.name for queue in sender.task_consumer.queues)
    threading.Thread(target=_keep_beating, args=(identity(), queues, sender), name="beat", daemon=True).start()


def _shutting_down(**_: Any) -> None:
    leaving.set()


def _gone(**_: Any) -> None:
    _over.set()
    try:
        Heartbeat.objects.filter(name=identity()).delete()
    except Error:
        logger.warning("the database is away: the last heartbeat stays and grows old")


def connect() -> None:
    """Listen to Celery's signals."""
    signals.worker_ready.connect(_ready, weak=False)
    signals.worker_shutting_down.connect(_shutting_down, weak=False)
    signals.worker_shutdown.connect(_gone, weak=False)
