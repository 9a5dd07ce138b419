"""What a sweep's fields have to do with its metric: importances, and parallel coordinates of the trials."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

FEWEST = 3
"""Nothing is shown for fewer trials with a result."""
WIDTH, HEIGHT = 600, 200
CLOSEST = 0.08
"""Minimum distance of tick labels as a share of the height; closer values have labels only at the ends."""


@dataclass(frozen=True)
class Importance:
    """How strongly a field and the metric are associated, from 0 to 1; for numbers, also the direction.

    For numbers it is the absolute value of Spearman's rank correlation, for other values the correlation ratio η: the
    root of the share of the metric's variance that lies between the values. Both look at one field at a time.
    """

    path: str
    value: float
    direction: str = ""


@dataclass(frozen=True)
class Axis:
    """One vertical axis: its place, title, and its ticks as (y, text): a few values, or the lowest and the highest."""

    x: float
    title: str
    ticks: Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Line:
    """One trial: its points (for an SVG polyline), its result, and its rank.

    `level` is the quarter of the results, from 0 for the worst to 3 for the best.
    """

    points: str
    result: str
    level: int
    best: bool


@dataclass(frozen=True)
class Coordinates:
    """The axes, and a line for each trial, the best one last, so that it is drawn above the others."""

    axes: Sequence[Axis]
    lines: Sequence[Line]


def importances(trials: Sequence[tuple[Mapping[str, Any], float]], paths: Sequence[str]) -> list[Importance]:
    """The importance of each field that varies, the greatest first; none for fewer than three trials."""
    if len(trials) < FEWEST:
        return []
    results = [result for _, result in trials]
    columns = {path: [values.get(path) for values, _ in trials] for path in paths}
    varied = {path: column for path, column in columns.items() if len({json.dumps(value) for value in column}) > 1}
    measured = [_importance(path, column, results) for path, column in varied.items()]
    return sorted(measured, key=lambda importance: (-importance.value, importance.path))


def _importance(path: str, column: Sequence[Any], results: Sequence[float]) -> Importance:
    if len(set(results)) == 1:
        return Importance(path, 0.0)
    if not all(_number(value) for value in column):
        return Importance(path, _ratio([json.dumps(value) for value in column], results))
    from scipy import stats  # slow to import, for every process of the site

    correlation = float(stats.spearmanr(column, results).statistic)
    return Importance(path, abs(correlation), "rises" if correlation > 0 else "falls" if correlation < 0 else "")


def _ratio(values: Sequence[str], results: Sequence[float]) -> float:
    """The correlation ratio of groups of results, by their values."""
    groups: dict[str, list[float]] = {}
    for value, result in zip(values, results, strict=True):
        groups.setdefault(value, []).append(result)
    mean = fmean(results)
    between = sum(len(group) * (fmean(group) - mean) ** 2 for group in groups.values())
    return math.sqrt(between / sum((result - mean) ** 2 for result in results))


def coordinates(
    trials: Sequence[tuple[Mapping[str, Any], float]], fields: Sequence[tuple[str, str]], metric: str
) -> Coordinates | None:
    """The drawing of trials, the best first, over the fields (path and text of the values) and the metric.

    None for too few. Fields with numbers have a scale, logarithmic where they were drawn so; other values are spread
    evenly, in alphabetical order.
    """
    if len(trials) < FEWEST:
        return None
    columns = [_column([values.get(path) for values, _ in trials], text.endswith(" log")) for path, text in fields]
    columns.append(_column([result for _, result in trials], log=False))
    titles = [*(path for path, _ in fields), metric]
    step = WIDTH / (len(columns) - 1)
    named = enumerate(zip(titles, columns, strict=True))
    axes = [Axis(round(at * step, 1), title, ticks) for at, (title, (_, ticks)) in named]
    lines = [
        Line(
            " ".join(f"{round(at * step, 1)},{_y(heights[place])}" for at, (heights, _) in enumerate(columns)),
            f"{result:.4g}",
            3 - 4 * place // len(trials),
            best=place == 0,
        )
        for place, (_, result) in enumerate(trials)
    ]
    return Coordinates(axes, lines[::-1])


def _column(values: Sequence[Any], log: bool) -> tuple[list[float], list[tuple[float, str]]]:
    """The heights of values from 0 to 1, and the ticks of their axis."""
    if all(_number(value) for value in values):
        heights = _heights([math.log(value) if log and min(values) > 0 else float(value) for value in values])
        texts = [f"{value:.3g}" for value in values]
    else:
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        order = sorted(set(texts))
        heights = _heights([float(order.index(text)) for text in texts])
    ticks = sorted(dict(zip(heights, texts, strict=True)).items())
    apart = all(upper[0] - lower[0] >= CLOSEST for lower, upper in pairwise(ticks))
    shown = ticks if apart else [ticks[0], ticks[-1]]
    return heights, [(_y(height), text) for height, text in shown]


def _y(height: float) -> float:
    return round(HEIGHT * (1 - height), 1)


def _heights(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [0.5 if high == low else (value - low) / (high - low) for value in values]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
