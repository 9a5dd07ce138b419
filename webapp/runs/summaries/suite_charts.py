"""Suites beside each other: every task's number for each model, and charts of those that the suite names.

A model's suites over several seeds of its training are one series, whose numbers are the mean, the least and the
largest over them; the number of a single run has its own interval.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from webapp.runs.episodes.discussions import DASHES
from webapp.runs.models import Checkpoint, Run
from webapp.runs.querysets import RunQuerySet

STEP, TOP = 100, 100
"""The width of a point and the height of a chart in its coordinates."""
KINDS = {"won": "Games won", "normalised": "Normalised return", "raw": "Return"}
"""The numbers of a row, the first that all rows of a chart have is drawn."""
SCALES = {"won": (0.0, 1.0), "normalised": (0.0, 100.0)}
LISTED, SHOWN = 30, 6
Estimate = Mapping[str, float]


@dataclass(frozen=True)
class Series:
    """One model: its suites, one for each seed of its training, with the rows of each by task."""

    label: str
    runs: Sequence[Run]
    rows: Sequence[Mapping[str, Mapping[str, Any]]]

    def estimate(self, task: str, kind: str) -> Estimate | None:
        """Return mean, low and high of a task's number; None where a run lacks it."""
        estimates = [row for rows in self.rows if (row := rows.get(task, {}).get(kind))]
        if len(estimates) < len(self.rows) or not estimates:
            return None
        if len(estimates) == 1:
            return estimates[0]
        means = [row["mean"] for row in estimates]
        return {"mean": fmean(means), "low": min(means), "high": max(means)}


@dataclass(frozen=True)
class Mark:
    """One point of a series: its number, and its place in the chart."""

    estimate: Estimate | None
    x: float
    low: float
    mean: float
    high: float


@dataclass(frozen=True)
class DrawnSeries:
    """One series of a chart; `path` are the SVG points of its line."""

    label: str
    place: int
    dash: str
    marks: Sequence[Mark | None]

    @property
    def path(self) -> str:
        """The points as a polyline has them."""
        return " ".join(f"{mark.x:g},{mark.mean:g}" for mark in self.marks if mark)


@dataclass(frozen=True)
class Chart:
    """One chart: the labels of its points, its series, and which number it draws between which ends.

    Without a heading of its own it has its title and the number.
    """

    title: str
    number: str
    ends: tuple[float, float]
    points: Sequence[str]
    series: Sequence[DrawnSeries]
    heading: str = ""

    @property
    def width(self) -> int:
        """The width of the chart in its own coordinates."""
        return STEP * len(self.points)

    @property
    def table(self) -> list[tuple[str, list[Estimate | None]]]:
        """Every point with the numbers of all series."""
        return [
            (point, [mark.estimate if (mark := model.marks[at]) else None for model in self.series])
            for at, point in enumerate(self.points)
        ]


@dataclass(frozen=True)
class SideBySide:
    """Several suites: their series, every task that any has over all its seats, and the charts."""

    series: Sequence[Series]
    tasks: Sequence[tuple[str, str, list[Estimate | None]]]
    charts: Sequence[Chart]
    seeds: bool


def side_by_side(runs: Iterable[Run]) -> SideBySide | None:
    """Return the suites among `runs` beside each other; None without one that has a result."""
    series = _series([run for run in runs if run.kind == Run.Kind.SUITE and "rows" in (run.result or {})])
    if not series:
        return None
    first: dict[str, Mapping[str, Any]] = {}
    opponents: dict[str, set[str]] = {}
    for key, row in (item for model in series for rows in model.rows for item in rows.items()):
        first.setdefault(key, row)
        opponents.setdefault(key, set()).add(row["opponent"])
    tasks = []
    for key, row in first.items():
        kind = _kind([key], series)
        if kind:
            tasks.append((_title(row, opponents[key]), KINDS[kind], [model.estimate(key, kind) for model in series]))
    several = any(len(model.runs) > 1 for model in series)
    return SideBySide(series, tasks, _charts(first, series), several)


def _series(runs: Sequence[Run]) -> list[Series]:
    """Return a series for each model; a second suite of the same seed of a training begins another series."""
    groups: dict[tuple[str, int], list[tuple[Run, Mapping[str, Any]]]] = {}
    seen: Counter[tuple[str, Any]] = Counter()
    for run in runs:
        if run.result:
            alike, seed = _trained_alike(run)
            groups.setdefault((alike, seen[alike, seed]), []).append((run, run.result))
            seen[alike, seed] += 1
    labels = [_label(of_group) for of_group in groups.values()]
    return [
        Series(
            label if labels.count(label) == 1 else f"{label}, #{of_group[0][0].pk}",
            [run for run, _ in of_group],
            [_by_task(suite["rows"]) for _, suite in of_group],
        )
        for label, of_group in zip(labels, groups.values(), strict=True)
    ]


def _label(of_group: Sequence[tuple[Run, Mapping[str, Any]]]) -> str:
    [(_, first), *others] = of_group
    more = len(others)
    return first["conditions"]["model"]["title"] + (f" and {more} more seed{'s' if more > 1 else ''}" if more else "")


def _trained_alike(run: Run) -> tuple[str, Any]:
    """Return what is the same in suites of one training with several seeds, and the seed of this one.

    A suite of which nothing is known is a training of its own.
    """
    checkpoint = run.start_checkpoint
    if checkpoint is None or checkpoint.run is None:
        return f"run {run.pk}", None
    return json.dumps([_training(checkpoint), _games(run)], sort_keys=True), checkpoint.run.config.get("seed")


def _training(checkpoint: Checkpoint) -> list[Any]:
    """Return how a checkpoint was trained but for seeds and names, from the first weights on."""
    run = checkpoint.run
    if run is None:
        return [checkpoint.pk]
    config = {name: value for name, value in run.config.items() if name not in ("seed", "name")}
    began = _training(run.start_checkpoint) if run.start_checkpoint else []
    return [config, run.dataset_version_id, checkpoint.step, began]


def _by_task(rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the rows over all seats by what makes them comparable.

    That is the game and, but for a side, its opponent: models of other seeds may have opponents and partners of their
    own. Tasks that are alike are told apart by their order.
    """
    rows_by_key: dict[str, Mapping[str, Any]] = {}
    seen: Counter[str] = Counter()
    for row in rows:
        if row["seat"] is None:
            side = row.get("side", [])
            alike = json.dumps([row["title"], side or row["opponent"]])
            seen[alike] += 1
            rows_by_key[f"{alike} {seen[alike]}"] = row
    return rows_by_key


def _title(row: Mapping[str, Any], opponents: Collection[str]) -> str:
    """Return a task in words; a side's opponent is named if it is the same for all models."""
    side = f", {', '.join(row['side'])}" if row.get("side") else ""
    return f"{row['title']} against {row['opponent'] if len(opponents) == 1 else 'opponents of their own'}{side}"


def _kind(keys: Sequence[str], series: Sequence[Series]) -> str:
    """Return the first number that every series has in all of these tasks, else one that any has; empty for none."""
    for enough in (all, any):
        for kind in KINDS:
            if enough(model.estimate(key, kind) is not None for model in series for key in keys):
                return kind
    return ""


def _charts(rows: Mapping[str, Mapping[str, Any]], series: Sequence[Series]) -> list[Chart]:
    points: dict[str, dict[str, str]] = {}
    for key, row in rows.items():
        for chart, label in row.get("charts", ()):
            points.setdefault(chart, {}).setdefault(label, key)
    return [_chart(title, _in_order(of_chart), series) for title, of_chart in points.items()]


def _in_order(points: Mapping[str, str]) -> dict[str, str]:
    """Return the points by size if all labels are whole numbers, else as the suite has them."""
    if all(label.isascii() and label.isdigit() for label in points):
        return dict(sorted(points.items(), key=lambda pair: int(pair[0])))
    return dict(points)


def _chart(title: str, points: Mapping[str, str], series: Sequence[Series]) -> Chart:
    kind = _kind(list(points.values()), series) or "raw"
    estimates = [[model.estimate(key, kind) for key in points.values()] for model in series]
    shown = [estimate for row in estimates for estimate in row if estimate]
    low = min((estimate["low"] for estimate in shown), default=0.0)
    ends = SCALES.get(kind, (low, max((estimate["high"] for estimate in shown), default=1.0)))
    drawn = [
        DrawnSeries(
            label=model.label,
            place=place,
            dash=DASHES[place % len(DASHES)],
            marks=[placed(estimate, at, place, len(series), ends) for at, estimate in enumerate(row)],
        )
        for place, (model, row) in enumerate(zip(series, estimates, strict=True))
    ]
    return Chart(title, KINDS[kind], ends, list(points), drawn)


def placed(estimate: Estimate | None, at: int, place: int, of: int, ends: tuple[float, float]) -> Mark | None:
    """Return where a number stands: series stand side by side at each point."""
    if estimate is None:
        return None
    x = round(STEP * (at + 0.5 + 0.5 * ((place + 0.5) / of - 0.5)), 1)
    reach = (ends[1] - ends[0]) or 1.0

    def height(value: float) -> float:
        return round(TOP * (1 - (min(max(value, ends[0]), ends[1]) - ends[0]) / reach), 1)

    return Mark(estimate, x, *(height(estimate[name]) for name in ("low", "mean", "high")))


def of_checkpoints(run: Run, visible: RunQuerySet) -> list[Run]:
    """Return the newest suites of a run's checkpoints that have a result, oldest first."""
    suites = visible.filter(kind=Run.Kind.SUITE, start_checkpoint__run=run, result__has_key="rows")
    return list(suites.select_related("start_checkpoint__run__start_checkpoint__run").order_by("-pk")[:SHOWN])[::-1]


def comparable(run: Run, visible: Iterable[Run]) -> list[Run]:
    """Return the suites among `visible` that play the same tasks as this one, whoever plays beside the model."""
    return [other for other in visible if other.pk != run.pk and _games(other) == _games(run)]


def _games(run: Run) -> list[Any]:
    names = ("game", "settings", "seats", "side")
    return [[task.get(name) for name in names] for task in run.config.get("suite", {}).get("tasks", ())]
