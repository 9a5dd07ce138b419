"""The tables of the page on emergence: curves by rule and by classifier of every seed, and behaviours by outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Raw = Mapping[str, Any]


def page(raw: Raw) -> Iterator[str]:
    """Yield the sizes, the curves and the rows by outcome of both games, a line each."""
    for game in ("negotiation", "werewolf"):
        for run in raw[game]["runs"]:
            yield from _curves(game, run)
        yield from _outcomes(game, raw[game]["runs"])


def _curves(game: str, run: Raw) -> Iterator[str]:
    authors = ("rule", "rule_corrected", "classifier", "behaviours")
    for author in (name for name in authors if name in run):
        for label, points in ((label, points) for label, points in run[author].items() if points):
            yield f"| {game} | {run['seed']} | {label} | {author} | {' | '.join(map(_point, points))} |"


def _point(point: Raw) -> str:
    if point["share"] is None:
        return "no turn"
    return f"{point['share']:.2f} ({point['low']:.2f} to {point['high']:.2f})"


def _outcomes(game: str, runs: Sequence[Raw]) -> Iterator[str]:
    """Yield how many rows have p and q up to 0.05, and every row with such a q."""
    for run in runs:
        rows = run["by_outcome"]
        small = [sum(row[name] <= 0.05 for row in rows) for name in ("p", "q")]
        yield f"| {game} | {run['seed']} | {len(rows)} | {small[0]} | {small[1]} |"
