"""The tables of the page on strategies: F1 by strategy and method, leads over the baselines, splits, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean
from typing import Any

from training.evaluate.intervals import over_seeds

Raw = Mapping[str, Any]
METHODS = ("head", "tfidf", "keywords", "always")
"""The columns of F1; the majority's is 0 where no label has half of the turns."""
TITLES = {"tfidf": "TF-IDF", "keywords": "keywords", "always": "always", "majority": "majority"}


def page(raw: Raw) -> Iterator[str]:
    """Yield the rows of F1, of leads, of splits, of the classifier's errors and of corrected shares."""
    rows = raw["rows"]
    for name, count in raw["labels"].items():
        cells = " | ".join(mean([row["f1"][method][name] for row in rows]) for method in METHODS)
        yield f"| {name} | {count} | {cells} |"
    cells = " | ".join(mean([row["macro"][method]["mean"] for row in rows]) for method in METHODS)
    yield f"| macro F1 | {sum(raw['labels'].values())} | {cells} |"
    for method in TITLES:
        yield _lead(raw, method)
    for row in rows:
        yield _split(row)
    for name in raw["labels"]:
        yield _errors([row["errors"][name] for row in rows], name)
    yield from _corrected(rows, list(raw["labels"]))


def mean(values: Sequence[float], digits: int = 3, *, signed: bool = False) -> str:
    """Return a mean over splits with its Student's t interval."""
    low, high = over_seeds(values)
    sign = "+" if signed else ""
    cells = [f"{value:{sign}.{digits}f}".replace("-", "−") for value in (fmean(values), low, high)]
    return f"{cells[0]} ({cells[1]} to {cells[2]})"


def corrected_interval(values: Sequence[float], train: int, test: int) -> tuple[float, float]:
    """Return the interval of a mean over splits that share dialogues (Nadeau and Bengio, Machine Learning 52, 2003).

    The variance of the mean is 1/J + test/train times that of the J values, instead of 1/J times.
    """
    low, high = over_seeds(values)
    half = (high - low) / 2 * sqrt(1 + len(values) * test / train)
    return fmean(values) - half, fmean(values) + half


def _lead(raw: Raw, method: str) -> str:
    """Return the classifier's lead over a method, by both intervals, and the splits whose own interval is above 0."""
    leads = [row["head_minus"][method] for row in raw["rows"]]
    values = [lead["mean"] for lead in leads]
    low, high = (f"{x:+.3f}".replace("-", "−") for x in corrected_interval(values, raw["train"], raw["test"]))
    above, below = sum(lead["low"] > 0 for lead in leads), sum(lead["high"] < 0 for lead in leads)
    return f"| {TITLES[method]} | {mean(values, signed=True)} | {low} to {high} | {above} | {below} | {len(leads)} |"


def _split(row: Raw) -> str:
    pooling, precision = row["pooling"], row["average_precision"]
    form = f"{pooling['layer']}, {pooling['how']}, {pooling['context']}"
    head, lead = (
        f"{each['mean']:{sign}.3f} ({each['low']:{sign}.3f} to {each['high']:{sign}.3f})".replace("-", "−")
        for each, sign in ((row["macro"]["head"], ""), (row["head_minus"]["tfidf"], "+"))
    )
    return f"| {row['seed']} | {form} | {head} | {lead} | {precision['head']:.3f} | {precision['tfidf']:.3f} |"


def _errors(rows: Sequence[Raw], name: str) -> str:
    names = ("sensitivity", "sensitivity_test", "specificity", "specificity_test", "brier", "brier_share")
    cells = " | ".join(f"{fmean(row[each] for row in rows):.3f}" for each in names)
    return f"| {name} | {cells} |"


def _corrected(rows: Sequence[Raw], names: Sequence[str]) -> Iterator[str]:
    """Yield for each strategy the shares of turns, how far the seen and the corrected one are off, and the coverage."""
    every: list[Raw] = []
    for name in names:
        of_name = [row["errors"][name] for row in rows]
        every += of_name
        shares = " | ".join(f"{fmean(row[each] for row in of_name):.3f}" for each in ("labelled", "seen", "corrected"))
        yield f"| {name} | {shares} | {_off(of_name)} |"
    yield f"| all | | | | {_off(every)} |"


def _off(rows: Sequence[Raw]) -> str:
    off = " | ".join(f"{fmean(abs(row[each] - row['labelled']) for row in rows):.3f}" for each in ("seen", "corrected"))
    covered = sum(row["low"] <= row["labelled"] <= row["high"] for row in rows)
    return f"{off} | {covered} of {len(rows)}"
