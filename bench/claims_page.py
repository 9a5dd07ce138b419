"""The tables of the page on claims: the extracted claims, their precision by an annotator's judgment, and recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scipy.stats import binomtest

Raw = Mapping[str, Any]
TITLES = {
    "werewolf6": "Werewolf, recorded",
    "werewolf6_begun": "Werewolf, truncated",
    "casino": "CaSiNo, recorded",
    "among_us": "Among Us, scripted",
}
VERDICTS = ("true", "false", "unknowable")


def page(raw: Raw) -> Iterator[str]:
    """Yield the claims by dataset and kind, the judgments of both rounds, and recall."""
    yield from _table(("dataset", "kind", "claims", *VERDICTS))
    for name, row in raw["datasets"].items():
        yield from _counts(TITLES[name], row)
    yield ""
    answers = ("is a claim", "proposition right", "verdict right", "all three, Wilson 95 %")
    yield from _table(("round", "dataset", "kind", "judged", *answers))
    for name, sample in raw["first_reading"].items():
        yield from _judged(f"first | {TITLES[name]}", sample)
    for name, row in raw["datasets"].items():
        yield from _judged(f"second | {TITLES[name]}", row["sample"])
    yield ""
    yield from _table(("dataset", "spoken moves read", "claims in them", "extracted", "recall, Wilson 95 %"))
    for name, row in raw["datasets"].items():
        turns = row["sample_of_turns"]
        extracted, missed = (sum(turn[key] for turn in turns) for key in ("extracted", "missed"))
        claims = extracted + missed
        yield f"| {TITLES[name]} | {len(turns)} | {claims} | {extracted} | {_share(extracted, claims)} |"


def _table(columns: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"


def wilson(successes: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a proportion (Wilson, 1927), without continuity correction."""
    interval = binomtest(successes, of).proportion_ci(0.95, "wilson")
    return float(interval.low), float(interval.high)


def _counts(title: str, row: Raw) -> Iterator[str]:
    whole: Counter[str] = Counter()
    for kind, verdicts in row["claims"].items():
        whole.update(verdicts)
        yield f"| {title} | {kind} | {_numbers(verdicts)} |"
    shares = " | ".join(f"{100 * whole[verdict] / whole.total():.0f} %" for verdict in VERDICTS)
    yield f"| {title}: {row['games']} games, {row['turns']} spoken moves | all | {whole.total()} | {shares} |"


def _numbers(verdicts: Mapping[str, int]) -> str:
    counts = [verdicts.get(verdict, 0) for verdict in VERDICTS]
    return " | ".join(map(str, (sum(counts), *counts)))


def _judged(title: str, sample: Sequence[Raw]) -> Iterator[str]:
    kinds = sorted({row["kind"] for row in sample})
    for kind in (*kinds, *(["all"] if sample else [])):
        rows = [row["judged"] for row in sample if kind in (row["kind"], "all")]
        answers = " | ".join(str(sum(row[at] for row in rows)) for at in range(3))
        yield f"| {title} | {kind} | {len(rows)} | {answers} | {_share(sum(map(all, rows)), len(rows))} |"


def _share(successes: int, of: int) -> str:
    low, high = wilson(successes, of)
    return f"{successes / of:.3f} ({low:.3f} to {high:.3f})"
