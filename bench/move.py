"""The time of a move by stage, from the mover's frame to the other player's, without the sockets between them.

Two people play a dialogue in one process, on a fresh installation with embedded databases. Each move runs what a socket
runs: the session check, the move, then the other player's read and frame. Times are medians and 95th percentiles over
all counted moves. Statements are counted, not timed: they are pipelined, so that the site waits for several at once.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bench.installation import installation
from bench.site_conditions import measured
from bench.sockets import NAMES, UNCOUNTED, match_of_two

STAGES = ("session", "move", "read", "frame")


@dataclass
class Stage:
    """Measurements of one stage per move: milliseconds, and the number of SQL statements, BEGIN and COMMIT included."""

    total: list[float] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return quantiles, and the milliseconds and statements of every move."""
        return {
            "p50_ms": quantile(self.total, 50),
            "p95_ms": quantile(self.total, 95),
            "statements": statistics.median(self.statements),
            "series": {
                "total_ms": _rounded(self.total),
                "statements": self.statements,
            },
        }


def quantile(values: list[float], percent: int) -> float:
    """The quantile of at least two values, rounded to hundredths."""
    return round(statistics.quantiles(values, n=100, method="inclusive")[percent - 1], 2)


def _rounded(values: list[float]) -> list[float]:
    return [round(value, 2) for value in values]


def main(arguments: Namespace) -> dict[str, Any]:
    """Play the moves; return the stages' times."""
    return measured(lambda: _measure(arguments))


def _measure(arguments: Namespace) -> dict[str, Any]:
    stages = {name: Stage() for name in STAGES}
    with installation("move"):
        _play(arguments.moves + UNCOUNTED, stages)
    for stage in stages.values():
        for values in (stage.total, stage.statements):
            del values[:UNCOUNTED]
    totals = [sum(values) for values in zip(*(stage.total for stage in stages.values()), strict=True)]
    return {
        "moves": arguments.moves,
        "p50_ms": quantile(totals, 50),
        "p95_ms": quantile(totals, 95),
        "stages": {name: stage.summary() for name, stage in stages.items()},
    }


def show(result: dict[str, Any]) -> str:
    """Return a line for the sum and each stage."""
    lines = [f"a move: p50 {result['p50_ms']:.1f} ms, p95 {result['p95_ms']:.1f} ms, without sockets"]
    for name, stage in result["stages"].items():
        times = f"p50 {stage['p50_ms']:.1f} ms, p95 {stage['p95_ms']:.1f} ms; {stage['statements']:.0f} statements"
        lines.append(f"  {name}: {times}")
    return "\n".join(lines)


def _play(moves: int, stages: dict[str, Stage]) -> None:
    """Speak in turn; the other player's snapshot and frame follow every move."""
    human_moves = import_module("webapp.arena.play.human_moves")
    sockets, feed = import_module("webapp.arena.sockets"), import_module("webapp.arena.live.feed")
    users = import_module("webapp.accounts.models").User.objects
    number, sessions = match_of_two(moves)
    people = [users.get(username=name) for name in NAMES]
    sign_ins = [sockets.SignIn(*pair) for pair in zip(sessions, (person.pk for person in people), strict=True)]
    feeds, shown = [feed.MatchFeed(number, seat) for seat in (0, 1)], [feed.ClientVersions(0, {})] * 2
    for step in range(moves):
        seat, other = step % 2, 1 - step % 2
        data = {"turn": str(step // 2), "action": "speak", "text": f"line {step} of the talk"}
        with _timed(stages["session"]):
            sign_ins[seat].user()
        with _timed(stages["move"]):
            human_moves.play(match_id=number, user=people[seat], data=data)
        with _timed(stages["read"]):
            snapshot = feeds[other].see()
        with _timed(stages["frame"]):
            html, shown[other] = snapshot.frame_for(people[other], shown[other])
        assert data["text"] in html
        _, shown[seat] = feeds[seat].see().frame_for(people[seat], shown[seat])


@contextmanager
def _timed(stage: Stage) -> Iterator[None]:
    """Add the block's time and statements to a stage."""
    connection = import_module("django.db").connection
    connection.force_debug_cursor = True  # logs BEGIN and COMMIT as well
    connection.queries_log.clear()
    began = time.perf_counter()
    try:
        yield
    finally:
        stage.total.append((time.perf_counter() - began) * 1000)
        stage.statements.append(len(connection.queries_log))
