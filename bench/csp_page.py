"""The tables of the page on collaborative self-play: what the start is worth, what each form changed, calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from bench.csp import compared, counting
from training.evaluate.intervals import Interval, over_seeds

Raw = Mapping[str, Any]
AREAS = ("search_calibration", "answer_calibration")


def lines(raw: Raw) -> Iterator[str]:
    """Yield a row for each question set with a corpus before learning; then those of the forms, and differences."""
    runs = {form: row["runs"] for form, row in raw["forms"].items()}
    first = next(iter(runs.values()))
    keys = list(first[0]["questions"]["0"])
    counted = counting(first)
    for key in keys:
        before = [_cell(run, "0", key) for run in first]
        means = " | ".join(f"{fmean(_mean(cell, name) for cell in before):.3f}" for name in COLUMNS)
        yield f"| {key} | {means} | {'yes' if key in counted else 'no'} |"
    for form, of_form in runs.items():
        for key in keys:
            change = compared(of_form, key)
            spread = estimate(change["f1"]) if len(of_form) > 1 else f"{change['f1'][0]:+.3f}"
            shares = " | ".join(f"{fmean(change[name]):.2f}" for name in ("searches", "known", "unknown"))
            yield f"| `{form}` | {key} | {spread} | {shares} |"
    yield from _calibration(runs, keys)
    for cell in raw.get("real", {}).get("cells", ()):
        yield real(cell)


COLUMNS = ("f1", "unsearched_f1", "worth", "search_rate")
"""The columns of what the start is worth."""


def real(cell: Raw) -> str:
    """Return the row of a real question set: F1, without searches too, what these are worth, rates, if it counts."""
    worth = estimate_of(Interval.from_dict(cell["worth"]))
    means = " | ".join(f"{cell[name]['mean']:.3f}" for name in ("f1", "unsearched_f1"))
    rates = f"{cell['search_rate']['mean']:.2f} | {cell['legal']['mean']:.3f}"
    return f"| {cell['label']}, {cell['tool']} | {means} | {worth} | {rates} | {'yes' if cell['counts'] else 'no'} |"


def _calibration(runs: Mapping[str, Sequence[Raw]], keys: Sequence[str]) -> Iterator[str]:
    """Yield the gains of both curves over a shuffled ranking, of the start and of each form, then the differences."""
    first = next(iter(runs.values()))
    for name, of_form in {"icl": first, **runs}.items():
        steps = ["0" if name == "icl" else str(run["steps"]) for run in of_form]
        cells = (
            " | ".join(
                f"{fmean(_gain(run, step, key, area) for run, step in zip(of_form, steps, strict=True)):+.3f}"
                for area in AREAS
            )
            for key in keys
        )
        for key, gains in zip(keys, cells, strict=True):
            yield f"| `{name}` | {key} | {gains} |"
    for other in [form for form in runs if form != "csp"]:
        for area in AREAS:
            pairs = zip(runs["csp"], runs[other], strict=True)
            leads = [fmean(_last(a, key, area) - _last(b, key, area) for key in keys) for a, b in pairs]
            if len(leads) > 1:
                yield f"`csp` minus `{other}`, {area.replace('_', ' ')}: {estimate(leads)}"


def _cell(run: Raw, step: str, key: str) -> Raw:
    cell: Raw = next(each for each in run["cells"][step] if f"{each['label']}/{each['tool']}" == key)
    return cell


def _mean(cell: Raw, name: str) -> float:
    return float(cell[name]["mean"])


def _gain(run: Raw, step: str, key: str, area: str) -> float:
    return float(_cell(run, step, key)[area]["gain"]["mean"])


def _last(run: Raw, key: str, area: str) -> float:
    return _gain(run, str(run["steps"]), key, area)


def estimate(values: Sequence[float]) -> str:
    """Return a mean over seeds with its Student's t interval."""
    low, high = over_seeds(values)
    return estimate_of(Interval(mean=fmean(values), low=low, high=high, n=len(values)))


def estimate_of(interval: Interval) -> str:
    """Return an interval with signs."""
    mean, low, high = (f"{value:+.3f}".replace("-", "−") for value in (interval.mean, interval.low, interval.high))
    return f"{mean} ({low} to {high})"
