"""A fair comparison of two sides on one machine: they take turns, A B A B A B, and medians with spread are told."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of one side: the rate that is compared, and where its seconds went."""

    rate: float
    seconds: dict[str, float] = field(default_factory=dict)


def alternate(a: Callable[[], Reading], b: Callable[[], Reading], rounds: int) -> dict[str, Any]:
    """Run a, b, a, b, …; return both sides and the ratio of their medians (and of each round) as JSON data.

    One run of each goes before and is not counted: it fills caches and compiles what is compiled once.
    """
    if rounds < 1:
        raise ValueError("at least one round is needed")
    a()
    b()
    pairs = [(a(), b()) for _ in range(rounds)]
    ratios = [one.rate / other.rate for one, other in pairs]
    return {
        "order": "A B " * rounds + "after one uncounted run of each",
        "a": side([one for one, _ in pairs]),
        "b": side([other for _, other in pairs]),
        "ratio": statistics.median(one.rate for one, _ in pairs) / statistics.median(other.rate for _, other in pairs),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def side(readings: list[Reading]) -> dict[str, Any]:
    """Return median, spread and every reading of one side, and the median seconds of each of its parts."""
    rates = [reading.rate for reading in readings]
    parts = {name: None for reading in readings for name in reading.seconds}
    return {
        "median": statistics.median(rates),
        "spread": [min(rates), max(rates)],
        "rates": rates,
        "seconds": {name: statistics.median(r.seconds.get(name, 0.0) for r in readings) for name in parts},
    }
