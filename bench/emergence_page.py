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


def with_talk(raw: Raw) -> Iterator[str]:
    """Yield the tables of runs of negotiation with their heads: what was said and agreed on, then those of `page`."""
    runs = raw["negotiation"]["runs"]
    steps = list(runs[0]["steps"])
    columns = [f"step {step}" for step in steps]
    yield from _head("seed", "held-out games", *columns)
    for run in runs:
        agreed = (f"{run['agreement'][step]:.2f}" for step in steps)
        yield f"| {run['seed']} | share with an agreement | {' | '.join(agreed)} |"
        turns = (str(run["steps"][step]["turns"]) for step in steps)
        yield f"| {run['seed']} | turns of talk | {' | '.join(turns)} |"
    yield ""
    yield from _head("game", "seed", "label", "by", *columns)
    for run in runs:
        yield from _curves("negotiation", run)
    yield ""
    yield from _head("game", "seed", "label", "κ", "turns", "by rule", "by classifier", "by both")
    for run in runs:
        yield from _compared("negotiation", run)
    yield ""
    yield from _head("game", "seed", "rows by outcome", "p up to 0.05", "q up to 0.05")
    yield from _outcomes("negotiation", runs)


def _head(*cells: str) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"
    yield "|---" * len(cells) + "|"


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
