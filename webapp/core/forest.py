"""Forest plots: intervals of differences as marks around zero, in the coordinates of `templates/forest.html`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Interval = Mapping[str, float]
"""`mean`, `low` and `high`."""
MIDDLE = 100
"""Where zero is; the plot is twice as wide."""


@dataclass(frozen=True)
class Mark:
    """An interval in the plot's coordinates."""

    low: float
    mean: float
    high: float


def reach_of(interval: Interval | None) -> float:
    """Return how far an interval reaches from zero."""
    return max(abs(interval["low"]), abs(interval["high"])) if interval else 0.0


def mark_of(interval: Interval | None, reach: float) -> Mark | None:
    """Return an interval on an axis that ends at `reach` on both sides of zero."""
    if interval is None:
        return None
    scale = 0.95 * MIDDLE / reach if reach else 0.0
    low, mean, high = (round(MIDDLE + scale * interval[name], 1) for name in ("low", "mean", "high"))
    return Mark(low, mean, high)
