"""The lines of `docs/results/agreement.md`, computed from the raw numbers beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

MOST_DEVIATION = 0.02
MOST_SECONDS = 2.0
LAYOUTS = {"all": "all five", "three": "three of five"}
CLOCKS = ("processor", "elapsed")
METHODS = {"majority": "majority", "dawid_skene": "Dawid–Skene", "mace": "MACE"}


def page(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables of alpha, of truth, of the coverage of intervals and of seconds, with their targets."""
    yield from _alpha(raw["alpha"])
    yield ""
    yield from _truth(raw["truth"])
    yield ""
    yield from _coverage(raw["coverage"])
    yield ""
    yield from _seconds(raw["seconds"])


def _alpha(raw: Mapping[str, Any]) -> Iterator[str]:
    yield "| values, annotators per item | known alpha | mean estimate | largest deviation |"
    yield "|---|---|---|---|"
    for name, values in raw["estimated"].items():
        shares, layout = name.split(", ")
        known = raw["known"][shares]
        largest = max(abs(value - known) for value in values)
        yield f"| {shares}, {LAYOUTS[layout]} | {known:.4f} | {fmean(values):.4f} | {largest:.4f} |"
    met = _met(raw["largest_deviation"] <= MOST_DEVIATION)
    yield ""
    yield f"Largest deviation: {raw['largest_deviation']:.4f} (target: at most {MOST_DEVIATION}; {met})."


def _truth(raw: Mapping[str, Any]) -> Iterator[str]:
    yield "| annotators per item | method | accuracy | minus majority | above zero |"
    yield "|---|---|---|---|---|"
    for layout, row in raw.items():
        for method, values in row["accuracy"].items():
            start = f"| {LAYOUTS[layout]} | {METHODS[method]} | {fmean(values):.4f} |"
            if method == "majority":
                yield f"{start} | |"
                continue
            lead = row["minus_majority"][method]
            low, high = lead["interval"]
            yield f"{start} {lead['mean']:+.4f} ({low:+.4f} to {high:+.4f}, n = {lead['n']}) | {_met(low > 0)} |"


def _coverage(raw: Mapping[str, Any]) -> Iterator[str]:
    yield "| errors | clusters | Student's t, error by bootstrap | Student's t, jackknife | percentiles |"
    yield "|---|---|---|---|---|"
    for kind in ("even", "clustered"):
        for count, row in raw.items():
            cells = " | ".join(f"{100 * row[kind][method]:.1f} %" for method in ("t", "jackknife", "percentiles"))
            yield f"| {kind} | {count} | {cells} |"


def _seconds(raw: Mapping[str, Any]) -> Iterator[str]:
    few, many = raw
    yield f"| coefficient with interval | {int(few):,} clusters | {int(many):,} clusters |"
    yield "|---|---|---|"
    for name in raw[few]:
        yield f"| {name} | {_both(raw[few][name])} | {_both(raw[many][name])} |"
    totals = [{clock: sum(cell[clock] for cell in row.values()) for clock in CLOCKS} for row in (raw[few], raw[many])]
    met = _met(max(total["processor"] for total in totals) <= MOST_SECONDS)
    yield f"| all nine (target: at most {MOST_SECONDS:.0f} s; {met}) | {_both(totals[0])} | {_both(totals[1])} |"


def _both(cell: Mapping[str, float]) -> str:
    return f"{cell['processor']:.3f} s ({cell['elapsed']:.3f} s)"


def _met(condition: bool) -> str:
    return "yes" if condition else "**no**"
