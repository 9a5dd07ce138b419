"""The latency from an event at a table to its viewers' sockets, with many tables at once, in milliseconds.

The measurement runs a fresh installation with embedded databases: site, clock and a worker for seats, as `make up` runs
them. Eight scripted players at each table play Werewolf, and several people watch each table over WebSockets. An event
is a line that becomes visible; its latency runs from just before it is written until a socket reads it. Fails if a
socket misses a line, or reads one twice or out of order.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bench.installation import installation
from bench.site_conditions import measured
from bench.sockets import ROOT, served
from training.errors import ParleyError
from training.games.prose import NAMES

LIMIT_MS = 100.0  # of p95, for twenty tables with a hundred sockets
ROLES = ("werewolf", "werewolf", "seer", "witch", "hunter", "villager", "villager", "villager")
OPENING = 8  # sockets that open at once
GRACE_S = 1.0  # lines written until this long before the end must have been read
APART_S = 1.0  # between the starts of two tables: started together, they would all vote in the same seconds
NUMBER = re.compile(r'data-number="(\d+)"')
WORKERS = (
    ("-m", "celery", "-A", "worker.app", "worker", "--queues", "play", "--pool", "threads", "--concurrency", "8"),
    ("manage.py", "clock"),
)


def main(arguments: Namespace) -> dict[str, Any]:
    """Play and watch for a while; return the latencies with their quantiles, and counts of lines, sockets and games."""
    return measured(lambda: _measure(arguments))


def _measure(arguments: Namespace) -> dict[str, Any]:
    with installation("table"), served() as port, working():
        matches, sessions = _tables(arguments.tables), _people(arguments.watchers)
        tabs, ended = asyncio.run(_watch(port, matches, sessions, arguments.seconds))
        latencies = times(tabs, _written(), ended)
        models = import_module("webapp.arena.models")
        votes = models.MatchMove.objects.filter(move__action="vote").count()
        over = models.Match.objects.filter(state="finished").count()
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    return {
        "seeds": f"1 to {arguments.tables}, of the games",
        "tables": len(matches),
        "sockets": len(tabs),
        "seconds": arguments.seconds,
        "lines": len(latencies),
        "votes": votes,
        "games_over": over,
        "p50_ms": round(cuts[49], 2),
        "p95_ms": round(cuts[94], 2),
        "p99_ms": round(cuts[98], 2),
        "limit_ms": LIMIT_MS,
        "ok": cuts[94] <= LIMIT_MS,
        "series_ms": [round(latency, 2) for latency in latencies],
    }


def show(result: dict[str, Any]) -> str:
    """Return the result in a few lines."""
    return "\n".join(
        [
            f"{result['tables']} tables, {result['sockets']} sockets: {result['lines']} lines in {result['seconds']} s",
            f"p50 {result['p50_ms']:.1f} ms, p95 {result['p95_ms']:.1f} ms, p99 {result['p99_ms']:.1f} ms; no gap",
            f"p95 within {LIMIT_MS:.0f} ms: {result['ok']}",
        ]
    )


@contextmanager
def working() -> Iterator[None]:
    """Run the clock and the worker for seats in processes of their own."""
    running = [
        subprocess.Popen([sys.executable, *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for command in WORKERS
    ]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def _tables(count: int) -> list[int]:
    """Start games of scripted players that anyone may watch without delay; return their numbers."""
    tables, records = import_module("webapp.arena.setup.tables"), import_module("training.records")
    people = import_module("webapp.accounts.models").User.objects
    settings = {"roles": list(ROLES), "rounds": 2, "spectator_delay": 0, "max_words": 60}
    places = [tables.Place(scripted="scripted")] * len(ROLES)
    matches = []
    for seed in range(1, count + 1):
        start = records.Scenario(
            id=f"load-{seed}", game="werewolf", seats=NAMES[: len(ROLES)], seed=seed, settings=settings
        )
        host = people.create(username=f"host{seed}", role="player")
        matches.append(tables.create(host=host, start=tables.Start(start), places=places, visibility="open").pk)
        time.sleep(APART_S)
    return matches


def _people(count: int) -> list[str]:
    """Return the sessions of `count` people who may watch."""
    users = import_module("webapp.accounts.models").User.objects
    client = import_module("django.test").Client
    sessions = []
    for number in range(count):
        browser = client()
        browser.force_login(users.create(username=f"watcher-{number}", role="player"))
        sessions.append(browser.cookies["session"].value)
    return sessions


@dataclass
class Tab:
    """One socket at one table, and when it read which line (seconds since the epoch)."""

    match: int
    read: list[tuple[int, float]] = field(default_factory=list)


async def _watch(port: int, matches: Sequence[int], sessions: Sequence[str], seconds: float) -> tuple[list[Tab], float]:
    """Return the lines that every socket read, and when reading stopped."""
    tabs, opening = [Tab(match) for match in matches for _ in sessions], asyncio.Semaphore(OPENING)
    watching = [
        asyncio.create_task(_read(port, tab, sessions[at % len(sessions)], opening)) for at, tab in enumerate(tabs)
    ]
    done, _ = await asyncio.wait(watching, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    ended = time.time()
    for task in watching:
        task.cancel()
    for task in done:
        task.result()
    await asyncio.gather(*watching, return_exceptions=True)
    return tabs, ended


async def _read(port: int, tab: Tab, session: str, opening: asyncio.Semaphore) -> None:
    """Read a table until cancelled; raise if the socket is closed."""
    address, origin = f"ws://127.0.0.1:{port}/ws/play/{tab.match}/", f"http://127.0.0.1:{port}"
    connect = import_module("websockets").connect
    async with opening:
        opened = await connect(address, origin=origin, additional_headers={"Cookie": f"session={session}"})
    async with opened:
        await opened.send(json.dumps({"last": 0, "parts": {}}))
        async for frame in opened:
            at = time.time()
            tab.read += [(int(number), at) for number in NUMBER.findall(str(frame))]
    raise ParleyError(f"a socket of match {tab.match} was closed")


def _written() -> dict[tuple[int, int], float]:
    """Return when each public line was written, by match and number."""
    rows = import_module("webapp.arena.models").ViewerRow.objects.filter(viewer=-1)
    return {(match, number): at.timestamp() for match, number, at in rows.values_list("match_id", "number", "at")}


def times(tabs: Sequence[Tab], written: Mapping[tuple[int, int], float], ended: float) -> list[float]:
    """Return the latency in milliseconds of every line read after all sockets were open; raise if one is missing.

    Every socket must have read all lines written until `GRACE_S` before the end.
    """
    due = Counter(match for (match, _), at in written.items() if at < ended - GRACE_S)
    for tab in tabs:
        numbers = [number for number, _ in tab.read]
        if len(numbers) < max(1, due[tab.match]) or numbers != list(range(1, len(numbers) + 1)):
            raise ParleyError(f"a socket of match {tab.match} lost, repeated or reordered lines")
    opened = max(tab.read[0][1] for tab in tabs)
    late = [(at, written[tab.match, number]) for tab in tabs for number, at in tab.read]
    return [1000 * (at - began) for at, began in late if began > opened]
