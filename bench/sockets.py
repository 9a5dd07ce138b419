"""The latency from a player's move to the event at the other player's socket, in milliseconds.

The measurement runs the site (`manage.py serve`) of a fresh installation with embedded databases, and one match per run
between two people with a WebSocket each. They speak in turn, a little slower than the rate limit of a socket. Fails if
a move is refused, or does not reach the other socket within ten seconds.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.installation import installation
from bench.site_conditions import measured
from training.errors import ParleyError

ROOT = Path(__file__).resolve().parents[1]
LIMITS_MS = {"p50_ms": 15.0, "p95_ms": 25.0}  # for one match on an idle machine
PERCENT = {"p50_ms": 50, "p95_ms": 95}
UNCOUNTED = 5  # first moves of a run, which load code and open connections
PACE_S = 0.13  # between two moves: a socket may send four messages per second
PATIENCE_S = 10.0
START_S = 60.0
NAMES = ("ann", "ben")


def main(arguments: Namespace) -> dict[str, Any]:
    """Play the matches; return p50 and p95 of every run, their median and spread, and every move's milliseconds."""
    return measured(lambda: _measure(arguments))


def _measure(arguments: Namespace) -> dict[str, Any]:
    with installation("sockets"), served() as port:
        runs = [_run(port, arguments.moves) for _ in range(arguments.rounds)]
    series = [[round(value, 2) for value in run] for run in runs]
    return {"moves": arguments.moves, "limits_ms": LIMITS_MS, **summary(series), "series_ms": series}


def show(result: dict[str, Any]) -> str:
    """Return one line for each quantile."""
    lines = []
    for name in ("p50_ms", "p95_ms"):
        low, high = result[name]["spread"]
        lines.append(f"{name.removesuffix('_ms')}: {result[name]['median']:.1f} ms (runs from {low:.1f} to {high:.1f})")
    limits = ", ".join(f"{name.removesuffix('_ms')} {limit:.0f} ms" for name, limit in LIMITS_MS.items())
    return "\n".join([*lines, f"within the limits ({limits}): {result['ok']}"])


def summary(runs: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the quantiles of each run's milliseconds, with median and spread over the runs."""
    quantiles: dict[str, Any] = {}
    for name, percent in PERCENT.items():
        each = [round(statistics.quantiles(run, n=100, method="inclusive")[percent - 1], 2) for run in runs]
        quantiles[name] = {"runs": each, "median": statistics.median(each), "spread": [min(each), max(each)]}
    return {**quantiles, "ok": all(quantiles[name]["median"] <= limit for name, limit in LIMITS_MS.items())}


@contextmanager
def served() -> Iterator[int]:
    """Run this installation's site in a process of its own; yield its port once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + START_S
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ParleyError("the site did not start; its output is above")
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _run(port: int, moves: int) -> list[float]:
    match, sessions = match_of_two(moves + UNCOUNTED)
    return asyncio.run(_play(port, match, sessions, moves + UNCOUNTED))[UNCOUNTED:]


def match_of_two(turns: int) -> tuple[int, list[str]]:
    """Set up a running dialogue of two people; return its number and their sessions."""
    tables = import_module("webapp.arena.setup.tables")
    waiting_room = import_module("webapp.arena.setup.waiting_room")
    records = import_module("training.records")
    people = import_module("webapp.accounts.models").User.objects
    users = [people.get_or_create(username=name, defaults={"role": "player"})[0] for name in NAMES]
    sides = [{"profile": {"occupation": name}, "goal": "Keep talking."} for name in NAMES]
    settings = {"scenario": "Two people talk.", "relationship": 2, "participants": sides, "turn_limit": turns}
    scenario = records.Scenario(id="talk", game="dialogue", seats=NAMES, seed=0, settings=settings)
    places = [tables.Place(user=user) for user in users]
    match = tables.create(host=users[0], start=tables.Start(scenario), places=places, deadline_s=3600, consent=False)
    waiting_room.answer_consent(match=match, user=users[1], agreed=False)
    sessions = []
    for user in users:
        client = import_module("django.test").Client()
        client.force_login(user)
        sessions.append(client.cookies["session"].value)
    return match.pk, sessions


async def _play(port: int, match: int, sessions: Sequence[str], moves: int) -> list[float]:
    """Speak in turn; return the milliseconds of every move."""
    connect = import_module("websockets").connect
    address, origin = f"ws://127.0.0.1:{port}/ws/play/{match}/", f"http://127.0.0.1:{port}"
    ann, ben = (
        connect(address, origin=origin, additional_headers={"Cookie": f"session={session}"}) for session in sessions
    )
    async with ann as first, ben as second:
        sockets, received = (first, second), (asyncio.Queue[Received](), asyncio.Queue[Received]())
        listening = [asyncio.create_task(_listen(*pair)) for pair in zip(sockets, received, strict=True)]
        for tab, queue in zip(sockets, received, strict=True):
            await tab.send(json.dumps({"last": 0, "parts": {}}))
            await _until(queue, 'id="last"')
        times = []
        for step in range(moves):
            began, text = time.perf_counter(), f"line {step} of the talk"
            await sockets[step % 2].send(json.dumps({"turn": str(step // 2), "action": "speak", "text": text}))
            times.append((await _until(received[1 - step % 2], text) - began) * 1000)
            await asyncio.sleep(max(0.0, PACE_S - (time.perf_counter() - began)))
        for task in listening:
            task.cancel()
        return times


Received = tuple[float, str]
"""When a message arrived, and its text."""


async def _listen(tab: Any, messages: asyncio.Queue[Received]) -> None:
    async for text in tab:
        messages.put_nowait((time.perf_counter(), text))


async def _until(messages: asyncio.Queue[Received], words: str) -> float:
    """Return when the message with these words arrived."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                at, text = await messages.get()
                if words in text:
                    return at
    except TimeoutError:
        raise ParleyError(f"{words!r} did not arrive within {PATIENCE_S:.0f} s") from None
