"""The tables of the page on emergence: curves by rule and by classifier of every seed, and behaviours by outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Raw = Mapping[str, Any]


def page(raw: Raw) -> Iterator[str]:
    """Yield the curves, the agreement of rules and classifier, and the rows by outcome of both games, a line each."""
    for game in (name for name in ("negotiation", "werewolf") if name in raw):
        for run in raw[game]["runs"]:
            yield from _curves(game, run)
            yield from _compared(game, run)
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


def _compared(game: str, run: Raw) -> Iterator[str]:
    """Yield each label's kappa of rule and classifier over all checkpoints, and the turns that both and each label."""
    for label, steps in run.get("compared", {}).items():
        every = steps["all"]
        counts = f"{every['turns']} | {every['by_rule']} | {every['by_classifier']} | {every['by_both']}"
        yield f"| {game} | {run['seed']} | {label} | {_kappa(every)} | {counts} |"


def _kappa(raw: Raw) -> str:
    if raw["kappa"] is None:
        return "not defined"
    interval = "no interval" if raw["low"] is None else f"{raw['low']:.2f} to {raw['high']:.2f}"
    return f"{raw['kappa']:.2f} ({interval})"


def _outcomes(game: str, runs: Sequence[Raw]) -> Iterator[str]:
    """Yield how many rows have p and q up to 0.05, and every row with such a q."""
    for run in runs:
        rows = run["by_outcome"]
        small = [sum(row[name] <= 0.05 for row in rows) for name in ("p", "q")]
        yield f"| {game} | {run['seed']} | {len(rows)} | {small[0]} | {small[1]} |"
