"""A suite's report: its rows by task, each normalised interval on a common axis, and the games behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from training.evaluate.intervals import CAUTION, ENOUGH
from webapp.runs.models import Checkpoint, Run
from webapp.runs.summaries import comparing, suite_charts

LATEST = 10
LOW, HIGH = -50.0, 150.0
"""The ends of the axis of normalised values; what lies beyond is drawn to the edge."""
WIDTH = 200


@dataclass(frozen=True)
class Line:
    """One row of the report; `mark` has the ends and the mean of its normalised interval on the axis, if it has one.

    `errors` lists the games that failed, by kind.
    """

    row: Mapping[str, Any]
    mark: tuple[float, float, float] | None
    errors: str

    @property
    def outside(self) -> bool:
        """Whether the mean lies beyond the axis, so that only the number says where."""
        return not LOW <= self.row["normalised"]["mean"] <= HIGH


@dataclass(frozen=True)
class Task:
    """One task with its lines: a seat each, then all seats. `conditions` are those of the last line, flattened."""

    title: str
    opponent: str
    held_out: bool
    lines: list[Line]
    conditions: list[tuple[str, Any]]


def of_run(run: Run) -> dict[str, Any] | None:
    """Return the page context of a suite's report; None if the run has none."""
    if not run.result or "rows" not in run.result:
        return None
    conditions = run.result["conditions"]
    wins = any(row.get("won") for row in run.result["rows"])
    opposed = any(row.get("opposite") for row in run.result["rows"])
    return {
        "model": conditions["model"]["title"],
        "note": conditions["model"].get("note", ""),
        "intervals": conditions["intervals"],
        "caution": CAUTION if any(row["raw"] and row["raw"]["n"] < ENOUGH for row in run.result["rows"]) else "",
        "tasks": [_task(list(rows)) for _, rows in groupby(run.result["rows"], key=lambda row: row["task"])],
        "zero": _place(0),
        "hundred": _place(100),
        "ends": (LOW, HIGH),
        "conditions": list(comparing.flat(conditions)),
        "drawn": any(row["normalised"] for row in run.result["rows"]),
        "wins": wins,
        "opposed": opposed,
        "span": 6 + wins + 2 * opposed,  # columns between the seat and the games, where a row has one text for all
        "charts": beside.charts if (beside := suite_charts.side_by_side([run])) else [],
    }


def _task(rows: list[Mapping[str, Any]]) -> Task:
    last = rows[-1]
    return Task(
        last["title"],
        last["opponent"],
        last["held_out"],
        [_line(row) for row in rows],
        [(name, value) for name, value in comparing.flat(last["provenance"]) if name != "seat"],
    )


def _line(row: Mapping[str, Any]) -> Line:
    normalised = row["normalised"]
    mark = (_place(normalised["low"]), _place(normalised["mean"]), _place(normalised["high"])) if normalised else None
    return Line(row, mark, ", ".join(f"{kind} {count}" for kind, count in sorted(row["errors"].items())))


def _place(value: float) -> float:
    return round(WIDTH * (min(max(value, LOW), HIGH) - LOW) / (HIGH - LOW), 1)


def of_checkpoint(checkpoint: Checkpoint) -> list[Run]:
    """Return the latest suites of a checkpoint, newest first."""
    runs = Run.objects.filter(start_checkpoint=checkpoint, kind=Run.Kind.SUITE)
    return list(runs.listed().order_by("-pk")[:LATEST])


def blocks(run: Run, steps: Iterable[int]) -> list[tuple[int, str]]:
    """Return the steps of a suite's episodes in order, each with the task and seat that was played."""
    titles = dict(run.episodes.order_by("step", "-number").distinct("step").values_list("step", "summary__block"))
    return [(step, titles.get(step) or f"task {step}") for step in sorted(steps)]
