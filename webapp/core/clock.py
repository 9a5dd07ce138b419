"""The clock: a small loop that runs steps when they are due. Apps register steps in their `clock.py`.

A step claims its rows with `FOR UPDATE SKIP LOCKED`, so two clocks do not do a thing twice, and says how many things
it did. A step that fails is logged and tried again at the next tick; the other steps go on.
"""

import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from django.db import Error, close_old_connections

from webapp.core import health
from webapp.core.models import Heartbeat, beat

logger = logging.getLogger(__name__)
Work = Callable[[], int]


@dataclass
class Step:
    """A registered step: run at most once in `every` seconds; `due` is the monotonic time of its next run."""

    name: str
    work: Work
    every: float
    due: float = 0.0


STEPS: dict[str, Step] = {}


def register(name: str, every: float = 0.5) -> Callable[[Work], Work]:
    """Decorator: call this function at every tick, at most once in `every` seconds."""

    def remember(work: Work) -> Work:
        STEPS[name] = Step(name, work, every)
        return work

    return remember


def tick(now: float | None = None) -> dict[str, int]:
    """Run every step that is due; returns how much each did (-1: it failed)."""
    now = time.monotonic() if now is None else now
    done = {}
    for step in STEPS.values():
        if step.due > now:
            continue
        step.due = now + step.every
        try:
            done[step.name] = step.work()
        except Exception:  # the root of a task: a failing step does not delay the others' deadlines
            logger.exception("clock step %s failed", step.name)
            done[step.name] = -1
    return done


def run(should_stop: Callable[[], bool], pause: float = 0.5) -> None:
    """Tick until asked to stop, with a heartbeat at every tick; survives a database that is away."""
    name = f"clock@{socket.gethostname()}:{os.getpid()}"
    while not should_stop():
        started = time.monotonic()
        done = tick(started)
        try:
            failed = sorted(step for step, count in done.items() if count < 0)
            beat(Heartbeat.Kind.CLOCK, name, failed=failed, pid=os.getpid())
        except Error as error:  # without a database there is no heartbeat either: retry
            logger.warning("clock could not beat: %s", error)
        close_old_connections()
        time.sleep(max(0.0, pause - (time.monotonic() - started)))
    with suppress(Error):  # else the row stays and grows old, as after a crash
        Heartbeat.objects.filter(name=name).delete()


register("core: dead heartbeats", every=60.0)(health.forget_dead)
