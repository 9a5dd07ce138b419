"""The tables of the pages on emergence: what was played, curves by rule and classifier, and behaviours by outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Raw = Mapping[str, Any]
AUTHORS = ("rule", "rule_corrected", "classifier", "behaviours")
OUTCOMES = {"negotiation": ("agreement", "share with an agreement"), "werewolf": ("wolves_win", "share won by wolves")}
COMPARED = "Rule and classifier on the same turns, over all checkpoints: Cohen's κ with its interval over games."
BY_OUTCOME = "Behaviours of seats with the better outcome against the others: rows, and those with small p or q."


def page(raw: Raw) -> Iterator[str]:
    """Yield the tables of both games, as far as they were measured, with their heads."""
    for game in (name for name in OUTCOMES if name in raw):
        runs = raw[game]["runs"]
        steps = list(runs[0]["steps"])
        columns = [f"step {step}" for step in steps]
        yield from (f"## {game.title()}", "")
        yield from _head("seed", "held-out games", *columns)
        for run in runs:
            yield from _played(game, run, steps)
        yield from ("", *_errors(raw[game]["classifier"]), "")
        yield from _head("seed", "label", "by", *columns)
        for run in runs:
            yield from _curves(run)
        yield from ("", COMPARED, "")
        yield from _head("seed", "label", "κ", "turns", "by rule", "by classifier", "by both")
        for run in runs:
            yield from _compared(run)
        yield from ("", BY_OUTCOME, "")
        yield from _head("seed", "rows", "p up to 0.05", "q up to 0.05")
        for run in runs:
            yield _small(run)
        yield ""


def _head(*cells: str) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"
    yield "|---" * len(cells) + "|"


def _played(game: str, run: Raw, steps: Sequence[str]) -> Iterator[str]:
    """Yield the share of the games with the game's outcome, and the turns of talk of all of them."""
    name, title = OUTCOMES[game]
    yield f"| {run['seed']} | {title} | {' | '.join(f'{run[name][step]:.2f}' for step in steps)} |"
    turns = (str(run["steps"][step]["turns"]) for step in steps)
    yield f"| {run['seed']} | turns that could be labelled | {' | '.join(turns)} |"


def _errors(classifier: Raw | None) -> Iterator[str]:
    if classifier:
        rates = (
            f"`{name}` {each['sensitivity']['share']:.2f} and {each['specificity']['share']:.2f}"
            for name, each in classifier["errors"].items()
        )
        yield f"The classifier's sensitivity and specificity: {', '.join(rates)}."


def _curves(run: Raw) -> Iterator[str]:
    for author in (name for name in AUTHORS if name in run):
        for label, points in ((label, points) for label, points in run[author].items() if points):
            yield f"| {run['seed']} | {label} | {author} | {' | '.join(map(_point, points))} |"


def _point(point: Raw) -> str:
    if point["share"] is None:
        return "no turn"
    return f"{point['share']:.2f} ({point['low']:.2f} to {point['high']:.2f})"


def _compared(run: Raw) -> Iterator[str]:
    """Yield each label's kappa of rule and classifier over all checkpoints, and the turns that both and each label."""
    for label, steps in run.get("compared", {}).items():
        every = steps["all"]
        counts = f"{every['turns']} | {every['by_rule']} | {every['by_classifier']} | {every['by_both']}"
        yield f"| {run['seed']} | {label} | {_kappa(every)} | {counts} |"


def _kappa(raw: Raw) -> str:
    if raw["kappa"] is None:
        return "not defined"
    interval = "no interval" if raw["low"] is None else f"{raw['low']:.2f} to {raw['high']:.2f}"
    return f"{raw['kappa']:.2f} ({interval})"


def _small(run: Raw) -> str:
    """How many rows have p and q up to 0.05."""
    small = [sum(row[name] <= 0.05 for row in run["by_outcome"]) for name in ("p", "q")]
    return f"| {run['seed']} | {len(run['by_outcome'])} | {small[0]} | {small[1]} |"
