"""What is up: database, Redis, clocks and workers. A part that does not answer is a finding, not an exception."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import F
from django.db.models.functions import Now

from webapp.core.models import Heartbeat
from webapp.core.queue import QUEUES

CLOCK_SECONDS = 10.0
WORKER_SECONDS = 30.0


@dataclass(frozen=True)
class Component:
    """One part's state: `ok`, and in words why not; `age` in seconds where it has a heartbeat."""

    name: str
    ok: bool
    why: str = ""
    age: float | None = None
    queues: tuple[str, ...] = ()


def database() -> Component:
    """Ask the database for a one."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return Component("database", False, str(error).strip().split("\n")[0])
    return Component("database", True)


def broker() -> Component:
    """Ping Redis."""
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
            client.ping()
    except redis.RedisError as error:
        return Component("redis", False, str(error))
    return Component("redis", True)


def _beating(kind: Heartbeat.Kind, limit: float) -> list[Component]:
    parts = []
    for row in Heartbeat.objects.filter(kind=kind).annotate(age=Now() - F("beaten_at")).order_by("name"):
        age = row.age.total_seconds()
        why = "" if age <= limit else f"no sign of life for {age:.0f} s"
        parts.append(Component(row.name, age <= limit, why, round(age, 1), tuple(row.detail.get("queues", ()))))
    return parts


def serve_slots() -> dict[str, int]:
    """How many models each live node serves at once, as its workers say; a node may have several workers."""
    alive = Heartbeat.objects.filter(
        kind=Heartbeat.Kind.WORKER, beaten_at__gt=Now() - timedelta(seconds=WORKER_SECONDS)
    )
    found: dict[str, int] = {}
    for detail in alive.filter(detail__has_key="serve_slots").values_list("detail", flat=True):
        node = str(detail["node"])
        found[node] = max(found.get(node, 0), int(detail["serve_slots"]))
    return found


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
