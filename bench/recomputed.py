"""The results of an experiment, recomputed from its export alone: no code of the site is used.

Reads the CSV with Python's own reader, averages the participants of a group, and takes means, Student's t and the
difference of two arms from numpy and scipy. Exact bounds of shares come from scipy's binomial test.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

LEVEL = 0.95
SHARES = ("agreement",)


def recompute(text: str, arms: Sequence[str], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return means with intervals by measure and arm, and the differences from the first arm.

    `columns` maps the name of each measure to its column.
    """
    rows = [row for row in csv.DictReader(text.splitlines()) if row["analysed"] == "1"]
    measures: dict[str, Any] = {}
    differences: dict[str, Any] = {arm: {} for arm in arms[1:]}
    for name, column in columns.items():
        values = {arm: _groups([row for row in rows if row["arm"] == arm], column) for arm in arms}
        measures[name] = {arm: _estimate(values[arm], share=name in SHARES) for arm in arms}
        for arm in arms[1:]:
            pair = (values[arm], values[arms[0]])
            certain = name in SHARES and all(set(each) in ({0.0}, {1.0}) for each in pair)
            differences[arm][name] = _bounds(*pair) if certain else _difference(*pair)
    return {"measures": measures, "differences": differences}


def _groups(rows: Sequence[Mapping[str, str]], column: str) -> list[float]:
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row[column] != "":
            groups[row["group"]].append(float(row[column]))
    return [fmean(values) for values in groups.values()]


def _estimate(values: Sequence[float], *, share: bool) -> dict[str, float]:
    mean, n = float(np.mean(values)), len(values)
    if share and set(values) <= {0.0, 1.0}:
        bounds = stats.binomtest(round(sum(values)), n).proportion_ci(LEVEL, method="exact")
    else:
        bounds = stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    return {"mean": mean, "low": float(bounds[0]), "high": float(bounds[1]), "n": n}


def _difference(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Return the difference of means: its variance from deviations over n, times k/(k − 1) for the smaller arm's k."""
    fewest = min(len(first), len(second))
    variance = sum(float(np.var(values)) / len(values) for values in (first, second)) * fewest / (fewest - 1)
    half = float(stats.t.ppf((1 + LEVEL) / 2, fewest - 1)) * variance**0.5
    lead = float(np.mean(first) - np.mean(second))
    return {"mean": lead, "low": lead - half, "high": lead + half, "n": len(first) + len(second)}


def _bounds(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """Return the difference of two shares that are 0 or 1 in all groups, between the ends of their exact intervals."""
    a, b = _estimate(first, share=True), _estimate(second, share=True)
    ends = {"mean": a["mean"] - b["mean"], "low": a["low"] - b["high"], "high": a["high"] - b["low"]}
    return {**ends, "n": len(first) + len(second)}


def largest_gap(stated: Mapping[str, Any], recomputed: Mapping[str, Any]) -> float:
    """Return the largest difference of two nested tables of numbers with the same keys; infinity for other keys."""
    gaps = [0.0]
    for key, value in recomputed.items():
        if key not in stated:
            return float("inf")
        gaps.append(largest_gap(stated[key], value) if isinstance(value, Mapping) else abs(stated[key] - value))
    return max(gaps)
