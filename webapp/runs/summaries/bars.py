"""A head-to-head's social metrics as bars: both models on every judged dimension (OMAR, figure 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.rewards.rubrics import RUBRICS, Dimension

Interval = Mapping[str, float]


@dataclass(frozen=True)
class Bar:
    """One model's mean with its 95 % interval; `share` is where the mean lies on the scale, from 0 to 1."""

    estimate: Interval
    share: float


@dataclass(frozen=True)
class Bars:
    """One dimension: both models' bars (None: not judged) and the paired difference. `name` is the summary's."""

    name: str
    dimension: Dimension
    a: Bar | None
    b: Bar | None
    difference: Interval | None


def of_summary(summary: Mapping[str, Any]) -> dict[str, list[Bars]]:
    """Return the bars of a head-to-head's summary by the rubric's title, as far as its seats were judged."""
    a, b, difference = (summary.get(group, {}) for group in ("a", "b", "difference"))
    titled: dict[str, list[Bars]] = {}
    for rubric in RUBRICS.values():
        for dimension in rubric.dimensions:
            name = f"{rubric.name}.{dimension.name}"
            if name in a or name in b:
                bars = Bars(
                    name, dimension, _bar(dimension, a.get(name)), _bar(dimension, b.get(name)), difference.get(name)
                )
                titled.setdefault(rubric.title, []).append(bars)
    return titled


def _bar(dimension: Dimension, estimate: Interval | None) -> Bar | None:
    if estimate is None:
        return None
    return Bar(estimate, (estimate["mean"] - dimension.low) / (dimension.high - dimension.low))
