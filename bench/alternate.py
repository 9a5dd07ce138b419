"""A fair comparison of two sides on one machine: they take turns, A B A B A B, and medians with spread are told."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of one side: the rate that is compared, and where its `seconds` went; `parts` divide the same finer."""

    rate: float
    seconds: dict[str, float] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)


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
    """Return median, spread and every reading of one side, and the median seconds of where they went."""
    rates = [reading.rate for reading in readings]
    return {
        "median": statistics.median(rates),
        "spread": [min(rates), max(rates)],
        "rates": rates,
        "seconds": _medians([reading.seconds for reading in readings]),
        "parts": _medians([reading.parts for reading in readings]),
    }


def _medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name: None for row in rows for name in row}
    return {name: statistics.median(row.get(name, 0.0) for row in rows) for name in names}


def where(found: Mapping[str, Any]) -> str:
    """Return where the seconds of both sides went, a side a line."""
    return "\n".join(
        f"  {name}: " + ", ".join(f"{part} {seconds:.2f} s" for part, seconds in found[name]["parts"].items())
        for name in ("a", "b")
    )
