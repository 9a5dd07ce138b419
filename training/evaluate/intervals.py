"""Intervals by bootstrap over scenarios: the scenario is what is resampled, whatever was averaged inside it.

Raises `BadInput` where there is nothing to average.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from training.errors import BadInput
from training.records import Record

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
