"""Intervals by bootstrap over scenarios (or games): that is what is resampled, whatever was averaged inside it.

Raises `BadInput` where there is nothing to average.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from training.errors import BadInput
from training.records import Record

if TYPE_CHECKING:
    from training.records import Floats

RESAMPLES = 10_000


class Interval(Record):
    """An estimate with its bootstrap interval. `n` is the number of scenarios (or matches) behind it; a mean of one
    scenario has no width to show.
    """

    mean: float
    low: float
    high: float
    n: int
    level: float = 0.95


def interval(values: Sequence[float], seed: int, level: float = 0.95) -> Interval:
    """Return the mean of one value per scenario with its percentile bootstrap interval (scipy).

    For a paired comparison the values are the scenarios' differences, both seatings and all seeds averaged first:
    resampling scenarios then keeps every pair together.
    """
    from scipy.stats import bootstrap

    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        raise BadInput("no scenario has a value, so there is no mean", "values")
    mean = float(data.mean())
    if np.ptp(data) == 0:  # one value only: every resample is the same
        return Interval(mean=mean, low=mean, high=mean, n=data.size, level=level)
    found = bootstrap(
        (data,),
        np.mean,
        confidence_level=level,
        n_resamples=RESAMPLES,
        batch=1000,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean=mean, low=float(found.low), high=float(found.high), n=data.size, level=level)


def difference(games: Sequence[tuple[Sequence[float], Sequence[float]]], seed: int, level: float = 0.95) -> Interval:
    """Return the mean of all first values minus that of all second ones, with a bootstrap interval over games.

    Each game brings as many values of either kind as it has, none of a kind included, and is drawn with all of them.
    Draws in which one kind is missing have no difference and are left out. `n` counts the games with any value.
    """
    sums = np.array([[sum(a), len(a), sum(b), len(b)] for a, b in games if a or b], dtype=np.float64).reshape(-1, 4)
    if not (sums[:, 1].any() and sums[:, 3].any()):
        raise BadInput("one of the two kinds has no value, so there is no difference", "values")
    generator, count = np.random.default_rng(seed), len(sums)
    alike, often = np.unique(sums, axis=0, return_counts=True)  # games that say the same are drawn as one kind: faster
    times = (generator.multinomial(count, often / count, size=1000) for _ in range(RESAMPLES // 1000))
    totals = np.concatenate([drawn @ alike for drawn in times])
    whole = totals[(totals[:, 1] > 0) & (totals[:, 3] > 0)]
    low, high = np.quantile(_differences(whole), [(1 - level) / 2, (1 + level) / 2])
    mean = float(_differences(sums.sum(axis=0, keepdims=True))[0])
    return Interval(mean=mean, low=float(low), high=float(high), n=count, level=level)


def _differences(totals: Floats) -> Floats:
    """Return the difference of means for rows of (sum, count, sum, count)."""
    found: Floats = totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3]
    return found
