"""Health of database, Redis, clocks and workers. A part that does not answer is reported, not raised.

A clock or worker that died without leaving stays in the report for `FORGET_SECONDS`; then its row is deleted.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import psycopg
import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import F
from django.db.models.functions import Now

from webapp.core.circuit import no_retries
from webapp.core.models import Heartbeat
from webapp.core.queue import QUEUES

logger = logging.getLogger(__name__)
CLOCK_SECONDS = 10.0
WORKER_SECONDS = 30.0
FORGET_SECONDS = 15 * 60.0
"""How long a clock or worker that is silent is reported."""
PROBE_SECONDS = 2.0
"""Longest wait of a probe for the database."""
REMEMBER_SECONDS = 1.0
"""For how long a probe's answer is reused, so that probes cost at most one connection in this time."""


@dataclass(frozen=True)
class Component:
    """One part's state: `ok`, and in words why not; `age` in seconds where it has a heartbeat."""

    name: str
    ok: bool
    why: str = ""
    age: float | None = None
    queues: tuple[str, ...] = ()


def database() -> Component:
    """Check the database by a trivial query."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return Component("database", False, str(error).strip().split("\n")[0])
    return Component("database", True)


class Probe:
    """The answer of `ask`, reused for `REMEMBER_SECONDS`."""

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._asked_at = -math.inf
        self._answer = False

    def __call__(self) -> bool:
        with self._lock:
            if time.monotonic() - self._asked_at > REMEMBER_SECONDS:
                self._answer, self._asked_at = self._ask(), time.monotonic()
            return self._answer


def _database_answers() -> bool:
    """Whether the database answers within `PROBE_SECONDS`, on a connection of its own: the pool may wait longer."""
    options: dict[str, Any] = {"autocommit": True, "connect_timeout": int(PROBE_SECONDS)}
    options["options"] = f"-c statement_timeout={int(PROBE_SECONDS * 1000)}"
    try:
        with psycopg.connect(**{**connection.get_connection_params(), **options}) as probe:
            probe.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


site_works = Probe(_database_answers)
"""Whether the site can work, for a probe."""


def broker() -> Component:
    """Ping Redis."""
    timeouts = {"socket_timeout": 2, "socket_connect_timeout": 2, "retry": no_retries()}
    try:
        with redis.Redis.from_url(settings.REDIS_URL, **timeouts) as client:
            client.ping()
    except redis.RedisError as error:
        return Component("redis", False, str(error))
    return Component("redis", True)


def _beating(kind: Heartbeat.Kind, limit: float) -> list[Component]:
    parts = []
    recent = Heartbeat.objects.filter(kind=kind, beaten_at__gte=Now() - timedelta(seconds=FORGET_SECONDS))
    for row in recent.annotate(age=Now() - F("beaten_at")).order_by("name"):
        age = row.age.total_seconds()
        why = "" if age <= limit else f"no heartbeat for {age:.0f} s; forgotten after {FORGET_SECONDS:.0f} s"
        parts.append(Component(row.name, age <= limit, why, round(age, 1), tuple(row.detail.get("queues", ()))))
    return parts


def forget_dead() -> int:
    """Clock step: delete heartbeats older than `FORGET_SECONDS`; return how many."""
    dead = Heartbeat.objects.filter(beaten_at__lt=Now() - timedelta(seconds=FORGET_SECONDS))
    for name in dead.values_list("name", flat=True):
        logger.warning("%s has given no heartbeat for %.0f s and is forgotten", name, FORGET_SECONDS)
    return dead.delete()[0]


def serve_slots() -> dict[str, int]:
    """How many models each live node serves at once, as its workers say; a node may have several workers."""
    alive = Heartbeat.objects.filter(
        kind=Heartbeat.Kind.WORKER, beaten_at__gt=Now() - timedelta(seconds=WORKER_SECONDS)
    )
    slots: dict[str, int] = {}
    for detail in alive.filter(detail__has_key="serve_slots").values_list("detail", flat=True):
        node = str(detail["node"])
        slots[node] = max(slots.get(node, 0), int(detail["serve_slots"]))
    return slots


def check() -> dict[str, Any]:
    """The whole state as one JSON-ready object; `ok` asks for a live clock and a live worker on every queue but
    `train-gpu`, which only some installations have.
    """
    parts = {"database": asdict(database()), "redis": asdict(broker())}
    try:
        clocks = _beating(Heartbeat.Kind.CLOCK, CLOCK_SECONDS)
        workers = _beating(Heartbeat.Kind.WORKER, WORKER_SECONDS)
    except DatabaseError:
        clocks, workers = [], []
    served = {queue for worker in workers if worker.ok for queue in worker.queues}
    missing = [queue for queue in QUEUES if queue not in served and queue != "train-gpu"]
    problems = [f"{part['name']}: {part['why']}" for part in parts.values() if not part["ok"]]
    if not any(clock.ok for clock in clocks):
        problems.append("clock: none is running (manage.py clock)")
    if missing:
        problems.append(f"workers: nobody serves {', '.join(missing)}")
    return {
        "ok": not problems,
        "problems": problems,
        **parts,
        "clocks": [asdict(clock) for clock in clocks],
        "workers": [asdict(worker) for worker in workers],
    }
