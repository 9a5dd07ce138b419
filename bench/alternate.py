"""A fair comparison of two sides on one machine: they alternate, A B A B A B; reports medians and their spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of one side: the compared rate, and its `seconds` by phase; `parts` divide the same time more finely."""

    rate: float
    seconds: dict[str, float] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)


def alternate(a: Callable[[], Reading], b: Callable[[], Reading], rounds: int) -> dict[str, Any]:
    """Run a, b, a, b, …; return both sides and the ratio of their medians (and of each round) as JSON data.

    A first run of each side is not counted: it fills caches and compiles kernels.
    """
    if rounds < 1:
        raise ValueError("at least one round is needed")
    a()
    b()
    pairs = [(a(), b()) for _ in range(rounds)]
    ratios = [first.rate / second.rate for first, second in pairs]
    return {
        "order": "A B " * rounds + "after one uncounted run of each",
        "a": side([first for first, _ in pairs]),
        "b": side([second for _, second in pairs]),
        "ratio": statistics.median(a.rate for a, _ in pairs) / statistics.median(b.rate for _, b in pairs),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def side(readings: list[Reading]) -> dict[str, Any]:
    """Return median, spread and every rate of one side, and the median seconds of each phase and part."""
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


def line(comparison: Mapping[str, Any], unit: str) -> str:
    """Return both medians, and the ratio with the smallest and the largest of a round."""
    ours, theirs = (round(comparison[name]["median"]) for name in ("a", "b"))
    low, high = min(comparison["ratios"]), max(comparison["ratios"])
    return f"{ours} against {theirs} {unit}, {comparison['ratio']:.2f} ({low:.2f} to {high:.2f})"


def where(comparison: Mapping[str, Any]) -> str:
    """Return the seconds of each part, one line per side."""
    return "\n".join(
        f"  {name}: " + ", ".join(f"{part} {seconds:.2f} s" for part, seconds in comparison[name]["parts"].items())
        for name in ("a", "b")
    )
