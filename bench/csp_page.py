"""The tables of the page on collaborative self-play: what the start is worth, what each form changed, calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from bench.csp import compared, counting
from training.evaluate.intervals import Interval, over_seeds

Raw = Mapping[str, Any]
AREAS = ("search_calibration", "answer_calibration")


def page(raw: Raw) -> Iterator[str]:
    """Yield the lines of `csp`, then the changes in the sets that count with more updates (`csp_stronger`)."""
    yield from lines(raw["csp"])
    stronger = {form: row["runs"] for form, row in raw["csp_stronger"]["forms"].items()}
    yield from _changes(stronger, raw["csp_stronger"]["counting"])


def lines(raw: Raw) -> Iterator[str]:
    """Yield a row for each question set with a corpus before learning; then those of the forms, and differences."""
    runs = {form: row["runs"] for form, row in raw["forms"].items()}
    first = next(iter(runs.values()))
    keys = list(first[0]["questions"]["0"])
    counted = counting(first)
    for key in keys:
        before = [_cell(run, "0", key) for run in first]
        means = " | ".join(f"{fmean(_mean(cell, name) for cell in before):.3f}".replace("-", "−") for name in COLUMNS)
        yield f"| {key} | {means} | {'yes' if key in counted else 'no'} |"
    yield from _changes(runs, keys)
    yield from _apart(runs, keys)
    yield from _calibration(runs, keys)
    for cell in raw.get("real", {}).get("cells", ()):
        yield real(cell)


def _changes(runs: Mapping[str, Sequence[Raw]], keys: Sequence[str]) -> Iterator[str]:
    """Yield for each form, set and corpus the change of F1, the share of searches that is left, and their rates."""
    for form, of_form in runs.items():
        for key in keys:
            change = compared(of_form, key)
            rates = " | ".join(f"{fmean(change[name]):.2f}" for name in ("known", "unknown"))
            yield f"| `{form}` | {key} | {estimate(change['f1'])} | {_share(change['searches'])} | {rates} |"


def _apart(runs: Mapping[str, Sequence[Raw]], keys: Sequence[str]) -> Iterator[str]:
    """Yield how much more each form searches where the fact is known than where not, as means over all sets."""
    for form, of_form in runs.items():
        changes = [compared(of_form, key) for key in keys]
        leads = [fmean(change["known"][at] - change["unknown"][at] for change in changes) for at in range(len(of_form))]
        yield f"`{form}`, known minus unknown: {estimate(leads)}"


def _share(values: Sequence[float]) -> str:
    """Return a mean over seeds without a sign, with its Student's t interval."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    low, high = over_seeds(values)
    return f"{fmean(values):.2f} ({low:.2f} to {high:.2f})".replace("-", "−")


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
        for key in keys:
            steps = ["0" if name == "icl" else str(run["steps"]) for run in of_form]
            gains = [
                fmean(_gain(run, step, key, area) for run, step in zip(of_form, steps, strict=True)) for area in AREAS
            ]
            yield f"| `{name}` | {key} | {' | '.join(map(signed, gains))} |"
    for area in AREAS:
        title = area.replace("_", " ")
        last = {form: [_mean_gain(run, str(run["steps"]), keys, area) for run in runs[form]] for form in runs}
        start = {form: [_mean_gain(run, "0", keys, area) for run in runs[form]] for form in runs}
        for form in runs:
            yield f"`{form}` minus `icl`, {title}: {_difference(last[form], start[form])}"
        for other in [form for form in runs if form != "csp"]:
            yield f"`csp` minus `{other}`, {title}: {_difference(last['csp'], last[other])}"


def _difference(values: Sequence[float], others: Sequence[float]) -> str:
    """Return the mean difference, paired by seed, with its interval."""
    return estimate([a - b for a, b in zip(values, others, strict=True)])


def _cell(run: Raw, step: str, key: str) -> Raw:
    cell: Raw = next(each for each in run["cells"][step] if f"{each['label']}/{each['tool']}" == key)
    return cell


def _mean(cell: Raw, name: str) -> float:
    return float(cell[name]["mean"])


def _gain(run: Raw, step: str, key: str, area: str) -> float:
    return float(_cell(run, step, key)[area]["gain"]["mean"])


def _mean_gain(run: Raw, step: str, keys: Sequence[str], area: str) -> float:
    return fmean(_gain(run, step, key, area) for key in keys)


def estimate(values: Sequence[float]) -> str:
    """Return a mean over seeds with its Student's t interval; a single seed's value alone."""
    if len(values) == 1:
        return signed(values[0])
    low, high = over_seeds(values)
    return estimate_of(Interval(mean=fmean(values), low=low, high=high, n=len(values)))


def estimate_of(interval: Interval) -> str:
    """Return an interval with signs."""
    return f"{signed(interval.mean)} ({signed(interval.low)} to {signed(interval.high)})"


def signed(value: float) -> str:
    """Return a number with its sign."""
    return f"{value:+.3f}".replace("-", "−")
