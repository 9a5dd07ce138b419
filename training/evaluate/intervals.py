"""Confidence intervals of means: Student's t over seeds and over scenarios (or games), exact for proportions.

The unit is a seed, a scenario or a game; values within a unit are averaged first. Student's t has its nominal coverage
on normal data from two values on. On skewed data its coverage is lower, which `docs/results/intervals.md` measures
against the bootstrap; below `ENOUGH` values the difference can be large, and displays warn about it (`Interval.few`).
Raises `BadInput` if there are no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from training.errors import BadInput
from training.reading import Record

if TYPE_CHECKING:
    from training.records import Floats

ENOUGH = 30
"""With at least this many values, Student's t is within about two points of its level on exponential data."""
CAUTION = f"fewer than {ENOUGH}: on skewed values an interval covers the truth less often than its level says"
METHOD = "95 %, Student's t over scenarios; exact (Clopper-Pearson) for proportions of scenarios"
UNIT = (0.0, 1.0)
"""The scale of shares."""
ROUNDING = 1e-12
"""A smaller standard error of a difference is 0."""


class Interval(Record):
    """An estimate with its interval. `n` is the number of seeds, scenarios or games. A single value has an interval
    without width, unless it is 0 or 1 or its scale is known.
    """

    mean: float
    low: float
    high: float
    n: int
    level: float = 0.95

    @property
    def few(self) -> bool:
        """Whether `n` is so small that `CAUTION` must be shown beside the interval."""
        return self.n < ENOUGH


def over_seeds(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return Student's t interval (low, high) of the mean over seeds; `BadInput` for fewer than two values."""
    data = _numbers(values)
    if data.size < 2:
        raise BadInput("an interval over seeds needs at least two values", "values")
    return _student(data, level)


def over_scenarios(values: Sequence[float], level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Return the interval (low, high) of the mean of one value per scenario; `BadInput` for too few values.

    Values that are all 0 or 1 are a proportion, whose interval is exact (Clopper-Pearson) and has a width even if the
    proportion is 0 or 1. Other values need at least two and get Student's t; if they are all equal, the interval has no
    width. The coverage of the bootstrap (BCa) stays below 93 % on normal data with 30 values, and exceeds Student's t
    only for 30 or more strongly skewed values.

    `seed` has no effect, because nothing is sampled. It is part of the signature so that a method that samples can
    replace this one without a change of its callers.
    """
    del seed
    data = _numbers(values)
    if data.size and np.isin(data, (0.0, 1.0)).all():
        return _exact(int(data.sum()), data.size, level)
    if data.size < 2:
        raise BadInput("an interval over scenarios needs at least two values", "values")
    return _student(data, level)


def interval(values: Sequence[float], level: float = 0.95, scale: tuple[float, float] | None = None) -> Interval:
    """Return the mean of one value per scenario with its interval.

    `scale` are the lowest and the highest possible value. On the scale 0 to 1, and without a scale, values that are all
    0 or 1 are a proportion as in `over_scenarios`. On any scale, equal values get an interval that allows for the
    largest share of scenarios with other values that is compatible with the data. For a paired comparison use `paired`.
    Raises `BadInput` for no values, NaN or infinity.
    """
    data = _numbers(values)
    if data.size == 0:
        raise BadInput("no scenario has a value, so there is no mean", "values")
    mean = float(data.mean())
    if scale in (None, UNIT) and np.isin(data, UNIT).all():
        low, high = _exact(int(data.sum()), data.size, level)
    elif scale and np.ptp(data) == 0:
        low, high = _unvaried(mean, scale, data.size, level)
    else:
        low, high = _student(data, level) if data.size > 1 else (mean, mean)
    return _interval(mean, low, high, data.size, level)


def paired(
    first: Sequence[float],
    second: Sequence[float],
    level: float = 0.95,
    scale: tuple[float, float] | None = None,
) -> Interval:
    """Return the mean difference first - second over scenarios; each scenario has one value of either kind.

    If the difference is the same in every scenario, and the values have a `scale` or are all between 0 and 1, the
    interval allows for the largest share of scenarios with another difference that is compatible with the data.
    """
    a, b = _numbers(first), _numbers(second)
    if a.size != b.size or a.size == 0:
        raise BadInput("a paired difference needs as many values of either kind, at least one", "values")
    differences = a - b
    mean = float(differences.mean())
    if scale is None and all(0 <= value <= 1 for value in (*a, *b)):
        scale = UNIT
    if scale and np.ptp(differences) == 0:
        width = scale[1] - scale[0]
        low, high = _unvaried(mean, (-width, width), a.size, level)
    else:
        low, high = _student(differences, level) if a.size > 1 else (mean, mean)
    return _interval(mean, low, high, a.size, level)


def difference(games: Sequence[tuple[Sequence[float], Sequence[float]]], level: float = 0.95) -> Interval:
    """Return the mean of all first values minus that of all second ones, with an interval over games.

    A game may have any number of values of either kind, including none. The variance is that of the linearised
    difference of ratios (Cochran, Sampling Techniques, section 6) with games as units; the degrees of freedom are those
    of the kind that fewer games have. Shares that are 0 or 1 in all games get the exact bounds of each kind's share of
    games; other shares that do not vary allow for the games that may differ, as in `paired`. If only one game has a
    kind, the interval of shares is -1 to 1. `n` counts the games with any value. Raises `BadInput` without a value of
    either kind, or for values outside 0 to 1 from a single game of a kind.
    """
    data = _two_kinds(games)
    low, high = _difference_bounds(data, level)
    return _interval(data.mean, low, high, len(data.sums), level)


def difference_p(games: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """Return the two-sided p of `difference`: its interval of level 1 - p ends at 0.

    It is 1 where there is no difference, and where the interval of shares is -1 to 1. Raises `BadInput` like
    `difference`.
    """
    from scipy import optimize, stats

    data = _two_kinds(games)
    fewest, size = min(data.counts), abs(data.mean)
    if size == 0:
        return 1.0
    if data.unvaried:  # x ** (1 / n) is the exact bound of a share that is 1 in all n games, and 1 minus it if it is 0
        half = optimize.brentq(lambda x: sum(x ** (1 / count) for count in data.counts) - 1, 0.0, 0.5)
        return float(2 * half)
    if fewest == 1:
        _difference_bounds(data, 0.95)
        return 1.0
    if data.error == 0:
        return float(min(1.0, 2 * (1 + size) ** -fewest)) if data.are_shares else 0.0
    return float(2 * stats.t.sf(size / data.error, fewest - 1))


class _TwoKinds(NamedTuple):
    """Rows of (sum, count, sum, count) per game, the mean and the number of games of each kind, and the standard error
    of the difference, 0 where either kind has one game.
    """

    sums: Floats
    means: tuple[float, float]
    counts: tuple[int, int]
    error: float
    unvaried: bool
    """Whether either kind is 0 in all games, or 1."""

    @property
    def mean(self) -> float:
        return self.means[0] - self.means[1]

    @property
    def are_shares(self) -> bool:
        return all(0 <= value <= 1 for value in self.means)


def _two_kinds(games: Sequence[tuple[Sequence[float], Sequence[float]]]) -> _TwoKinds:
    sums = np.array([[sum(a), len(a), sum(b), len(b)] for a, b in games if a or b], dtype=np.float64).reshape(-1, 4)
    if not (sums[:, 1].any() and sums[:, 3].any()):
        raise BadInput("one of the two kinds has no value, so there is no difference", "values")
    means = float(sums[:, 0].sum() / sums[:, 1].sum()), float(sums[:, 2].sum() / sums[:, 3].sum())
    counts = int(np.count_nonzero(sums[:, 1])), int(np.count_nonzero(sums[:, 3]))
    first, second = ((sums[:, at] - means[at // 2] * sums[:, at + 1]) / sums[:, at + 1].sum() for at in (0, 2))
    fewest = min(counts)
    error = float(np.sqrt(np.square(first - second).sum() * fewest / (fewest - 1))) if fewest > 1 else 0.0
    error = 0.0 if error < ROUNDING else error
    unvaried = not (first.any() or second.any()) and set(means) <= {0.0, 1.0}
    return _TwoKinds(sums, means, counts, error, unvaried)


def _difference_bounds(data: _TwoKinds, level: float) -> tuple[float, float]:
    """Return the bounds of `difference`."""
    if data.unvaried:
        a, b = (_exact(int(share) * n, n, level) for share, n in zip(data.means, data.counts, strict=True))
        return a[0] - b[1], a[1] - b[0]
    if min(data.counts) == 1:
        if not data.are_shares:
            raise BadInput("one of the two kinds has values from one game only, so there is no interval", "values")
        return -1.0, 1.0
    if data.error == 0 and data.are_shares:
        return _unvaried(data.mean, (-1.0, 1.0), min(data.counts), level)
    return student(data.mean, data.error, min(data.counts), level)


def student(estimate: float, error: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Student's t interval (low, high) of an estimate with standard error `error` from `n` >= 2 units."""
    from scipy import stats

    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    return estimate - half, estimate + half


def _numbers(values: Sequence[float]) -> Floats:
    data = np.asarray(values, dtype=np.float64)
    if not np.isfinite(data).all():
        raise BadInput("an interval needs finite numbers, and one of these is NaN or infinite", "values")
    return data


def _student(data: Floats, level: float) -> tuple[float, float]:
    mean = float(data.mean())
    if np.ptp(data) == 0:
        return mean, mean
    return student(mean, float(data.std(ddof=1) / np.sqrt(data.size)), data.size, level)


def _exact(successes: int, n: int, level: float) -> tuple[float, float]:
    from scipy import stats

    bounds = stats.binomtest(successes, n).proportion_ci(confidence_level=level, method="exact")
    return float(bounds.low), float(bounds.high)


def _unvaried(mean: float, ends: tuple[float, float], n: int, level: float) -> tuple[float, float]:
    """Return the interval of `n` equal values: others are at most as frequent as the Clopper-Pearson bound for an
    outcome that none of `n` scenarios has, and as far away as the scale's ends.
    """
    unseen = _exact(0, n, level)[1]
    return mean - unseen * (mean - ends[0]), mean + unseen * (ends[1] - mean)


def _interval(mean: float, low: float, high: float, n: int, level: float) -> Interval:
    return Interval(mean=mean, low=float(low), high=float(high), n=n, level=level)
