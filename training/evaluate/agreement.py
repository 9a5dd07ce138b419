"""Agreement of raters who labelled the same units: Krippendorff's alpha, the kappas of Cohen and Fleiss, Gwet's AC1 and
AC2, the share of agreeing pairs, and an interval for each.

`ratings[r][u]` is what rater r said of unit u, `None` where it said nothing. Equal values are one category, so `True`
and 1 are. Every coefficient is 1 for perfect agreement and 0 for the agreement that its chance model expects.
It is None where it is not defined: fewer than two units with two values, or nothing that varies.

Every coefficient is a function of sums over units: counts of values, of agreeing pairs, of their squares. The sums of
each cluster are computed once, and an interval reads nothing else. Time and memory grow with units, and with clusters
times categories; for alpha of ordinal data, whose distances depend on how often each value occurs, with clusters times
the square of categories. Raises `BadInput` for ratings of unequal length, and for values that a level cannot order.

Sources: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011); Cohen, A coefficient of agreement for nominal
scales (1960); Fleiss, Measuring nominal scale agreement among many raters (1971); Gwet, Handbook of Inter-Rater
Reliability (4th edition, 2014), chapters 2 to 5, also for Fleiss' kappa with missing values; Passonneau, Measuring
agreement on set-valued items (2006), for the distance of sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from training.errors import BadInput
from training.evaluate.intervals import student

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.records import Floats

    Ints: TypeAlias = NDArray[np.int64]

Value: TypeAlias = str | bool | int | float | frozenset[str]
Ratings: TypeAlias = Sequence[Sequence[Value | None]]
Level = Literal["nominal", "ordinal", "interval", "sets"]
"""How far two values are apart; `sets` are compared by MASI, and only by `krippendorff`."""
Coefficient = Literal["krippendorff", "cohen", "fleiss", "gwet", "percent"]
"""A new one that compares the pairs of each unit is a name here, a function, and its agreement by chance in `CHANCE`;
another has its sums in `cluster_sums`. A test names what is missing."""
FEWEST_CLUSTERS = 3
"""Of an interval."""
MOST_UNDEFINED = 0.1
"""The share of resamples without a value above which there is no interval: the others would be a selection."""
LEAST_ERROR = 1e-9
"""A smaller standard error is rounding: all resamples have the same value."""
CELLS = 160_000
"""Resamples times clusters that are counted at once: as many as fit into a processor's cache."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A coefficient with its 95 % interval, over `units` that two raters rated, in `clusters`, by `raters`.

    `value` is None where the coefficient is not defined, `low` and `high` also where the interval is not.
    """

    value: float | None
    low: float | None
    high: float | None
    units: int
    clusters: int
    raters: int


def krippendorff(ratings: Ratings, level: Level = "nominal") -> float | None:
    """Return Krippendorff's alpha: 1 - observed / expected disagreement over all pairs of values; None if not defined.

    A unit with a single value does not count. Distances: nominal, whether two values differ; ordinal, the square of how
    many values lie between them, counting half of those at either end; interval, the squared difference; sets, MASI.
    """
    return _value(cluster_sums("krippendorff", ratings, level=level))


def cohen(first: Sequence[Value | None], second: Sequence[Value | None]) -> float | None:
    """Return Cohen's kappa of two raters, over the units that both rated; None if not defined."""
    return _value(cluster_sums("cohen", (first, second)))


def fleiss(ratings: Ratings) -> float | None:
    """Return Fleiss' kappa; None if not defined.

    Fleiss assumes that every unit has as many ratings. For others this is Gwet's generalisation: the agreement is the
    mean over units with two ratings, and a category's share the mean over all rated units.
    """
    return _value(cluster_sums("fleiss", ratings))


def gwet(ratings: Ratings, level: Level = "nominal", categories: Sequence[Value] | None = None) -> float | None:
    """Return Gwet's AC1 (nominal) or AC2 with ordinal or quadratic (interval) weights; None if not defined.

    `categories` are all values of the scale, which the coefficient depends on; by default those that occur.
    """
    return _value(cluster_sums("gwet", ratings, level=level, categories=categories))


def percent(ratings: Ratings) -> float | None:
    """Return the observed agreement from 0 to 1: the share of agreeing pairs of raters, averaged over units."""
    return _value(cluster_sums("percent", ratings))


def estimate(
    coefficient: Coefficient,
    ratings: Ratings,
    clusters: Sequence[Hashable] | None = None,
    *,
    level: Level = "nominal",
    categories: Sequence[Value] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Return a coefficient with its 95 % interval over clusters; `cohen` takes the ratings of two raters.

    `clusters[u]` is the game or conversation of unit u, whose units depend on each other; by default every unit is its
    own cluster. `level` is of `krippendorff` and `gwet`, `categories` of `gwet`, as in their functions.

    The standard error is that of `resamples` draws of as many clusters with replacement, times sqrt(C / (C - 1)) for C
    clusters, and the interval is Student's t with C - 1 degrees of freedom. In simulations it covers the true
    alpha of nominal values in 92.7 to 95.5 % of samples for 5 to 50 clusters, the percentiles of the same draws in 81
    to 85 % for 5 clusters (`docs/results/agreement.md`). There is no interval for fewer than three clusters, where all
    resamples are alike, and where more than a tenth of them is not defined.
    """
    sums = cluster_sums(coefficient, ratings, clusters, level, categories)
    value = _value(sums)
    low, high = _interval(sums, value, resamples, seed) if value is not None else (None, None)
    return Agreement(value, low, high, sums.units, len(sums.rows), sums.raters)


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """The sums of each cluster (clusters x sums), and the coefficient of sums (..., sums) -> (...)."""

    rows: Floats
    coefficient: Callable[[Floats], Floats]
    units: int
    raters: int


def _value(sums: ClusterSums) -> float | None:
    if sums.units < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(sums.coefficient(sums.rows.sum(axis=0)))
    return value if math.isfinite(value) else None


def _interval(sums: ClusterSums, value: float, resamples: int, seed: int) -> tuple[float, float] | tuple[None, None]:
    count = len(sums.rows)
    if count < FEWEST_CLUSTERS:
        return None, None
    rng = np.random.default_rng(seed)
    drawn, batch = [], max(1, CELLS // count)
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        picks = rng.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
        times = np.bincount(picks.ravel(), minlength=size * count).reshape(size, count)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn.append(sums.coefficient(times.astype(np.float64) @ sums.rows))
    values = np.concatenate(drawn)
    defined = values[np.isfinite(values)]
    if len(defined) < (1 - MOST_UNDEFINED) * resamples:
        return None, None
    error = float(defined.std(ddof=1)) * math.sqrt(count / (count - 1))
    if error < LEAST_ERROR:
        return None, None
    low, high = student(value, error, count)
    return low, min(1.0, high)


def cluster_sums(
    coefficient: Coefficient,
    ratings: Ratings,
    clusters: Sequence[Hashable] | None = None,
    level: Level = "nominal",
    categories: Sequence[Value] | None = None,
) -> ClusterSums:
    """Return the sums of a coefficient; units that say nothing about it, and clusters of such units, are left out."""
    if coefficient == "cohen" and len(ratings) != 2:
        raise BadInput(f"Cohen's kappa is of two raters, not {len(ratings)}", "ratings")
    if level == "sets" and coefficient != "krippendorff":
        raise BadInput(f"{coefficient} does not compare sets", "level")
    codes, scale = _codes(ratings, level, categories)
    rated = (codes >= 0).sum(axis=0)
    used = rated >= (1 if coefficient in {"fleiss", "gwet"} else 2)
    codes, groups = codes[:, used], _numbered(clusters, used)
    if coefficient == "cohen":
        columns, function = _of_two(codes, len(scale))
    elif coefficient != "krippendorff":
        weights = _weights(scale, level) if coefficient == "gwet" else np.eye(len(scale))
        columns, function = _of_pairs(codes, weights, coefficient)
    elif level == "interval":
        columns, function = _of_moments(codes, scale)
    elif level == "sets":
        columns, function = _of_sets(codes, scale)
    elif level == "ordinal":
        rows = _coincidences(codes, len(scale), groups)
        return ClusterSums(rows, _ordinal_alpha, int((rated > 1).sum()), len(ratings))
    else:
        columns, function = _of_counts(codes, len(scale))
    count = int(groups.max(initial=-1)) + 1
    rows = np.stack([np.bincount(groups, column, count) for column in columns.T], axis=1)
    return ClusterSums(rows, function, int((rated > 1).sum()), len(ratings))


def _codes(ratings: Ratings, level: Level, categories: Sequence[Value] | None) -> tuple[Ints, Sequence[Value]]:
    """Return the place of every value in the scale (raters x units, -1 where missing), and the scale."""
    lengths = {len(row) for row in ratings}
    if len(lengths) > 1:
        raise BadInput("every rater needs a value, or None, for each unit", "ratings")
    values: Iterable[Value] = (value for row in ratings for value in row if value is not None)
    scale = list(dict.fromkeys(categories if categories is not None else values))
    if level in {"ordinal", "interval"}:
        numbers = _numbers(scale)
        if not all(map(math.isfinite, numbers)) or len(numbers) < len(scale):
            raise BadInput(f"{level} agreement needs finite numbers", "ratings")
        scale = sorted(numbers)
    places: dict[Value | None, int] = {value: place for place, value in enumerate(scale)} | {None: -1}
    try:
        codes = [[places[value] for value in row] for row in ratings]
    except KeyError as error:
        raise BadInput(f"{error.args[0]!r} is none of the categories", "ratings") from error
    return np.array(codes, dtype=np.int64).reshape(len(ratings), -1 if lengths else 0), scale


def _numbers(scale: Iterable[Value]) -> list[float]:
    return [float(value) for value in scale if isinstance(value, int | float)]


def _numbered(clusters: Sequence[Hashable] | None, used: NDArray[np.bool_]) -> Ints:
    """Return the number of the cluster of each used unit, from 0 in the order in which they appear."""
    if clusters is None:
        return np.arange(int(used.sum()))
    if len(clusters) != len(used):
        raise BadInput(f"{len(used)} units need as many clusters, not {len(clusters)}", "clusters")
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(clusters[unit], len(numbers)) for unit in np.flatnonzero(used)], dtype=np.int64)


def _counts(codes: Ints, categories: int) -> Floats:
    """Return how often each unit has each category (units x categories)."""
    units = codes.shape[1]
    places = np.arange(units) * categories + codes
    return np.bincount(places[codes >= 0], minlength=units * categories).reshape(units, categories).astype(np.float64)


def _of_counts(codes: Ints, categories: int) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the sums of nominal alpha: the coincidences of equal values, then how often each value occurs."""
    counts = _counts(codes, categories)
    equal = (counts * (counts - 1)).sum(axis=1) / (counts.sum(axis=1) - 1)
    return np.column_stack([equal, counts]), _nominal_alpha


def _nominal_alpha(sums: Floats) -> Floats:
    equal, counts = sums[..., 0], sums[..., 1:]
    total = counts.sum(axis=-1)
    result: Floats = 1 - (total - 1) * (total - equal) / (total**2 - (counts**2).sum(axis=-1))
    return result


def _coincidences(codes: Ints, categories: int, groups: Ints) -> Floats:
    """Return the coincidence matrix of every cluster, in one row."""
    rated = (codes >= 0).sum(axis=0)
    compact = -np.sort(-codes, axis=0)[: rated.max(initial=0)]  # as many rows as the most values of a unit
    size, pairs = categories**2, np.ones(len(compact)) - np.eye(len(compact))
    first, second = np.nonzero(pairs)
    both = (compact[first] >= 0) & (compact[second] >= 0)
    cells = (groups * size + compact[first] * categories + compact[second])[both]
    shares = np.broadcast_to(1 / (rated - 1), both.shape)[both]
    count = int(groups.max(initial=-1)) + 1
    result: Floats = np.bincount(cells, shares, count * size).reshape(count, size).astype(np.float64)
    return result


def _ordinal_alpha(sums: Floats) -> Floats:
    """Alpha of coincidence matrices; the distance of two values is the square of the difference of their mean ranks."""
    size = math.isqrt(sums.shape[-1])
    pairs = sums.reshape(*sums.shape[:-1], size, size)
    counts = pairs.sum(axis=-1)
    total, ranks = counts.sum(axis=-1), counts.cumsum(axis=-1) - counts / 2
    squares = (counts * ranks**2).sum(axis=-1)
    observed = squares - ((pairs @ ranks[..., None])[..., 0] * ranks).sum(axis=-1)
    expected = squares - (counts * ranks).sum(axis=-1) ** 2 / total
    result: Floats = 1 - (observed / total) / (expected / (total - 1))
    return np.where(expected > LEAST_ERROR * squares, result, np.nan)


def _of_moments(codes: Ints, scale: Sequence[Value]) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the sums of interval alpha: variance within a unit times its values, their number, sum and squares."""
    numbers = np.array([*_numbers(scale), np.nan])  # -1, missing, is the last
    values = numbers[codes] - (np.nanmean(numbers[codes]) if codes.size else 0.0)  # centred: no digits are lost
    present = codes >= 0
    count, total, squares = (np.where(present, each, 0.0).sum(axis=0) for each in (present, values, values**2))
    deviations = np.where(present, values - total / count, 0.0)
    within = (deviations**2).sum(axis=0) * count / (count - 1)
    return np.column_stack([within, count, total, squares]), _interval_alpha


def _interval_alpha(sums: Floats) -> Floats:
    within, count, total, squares = np.moveaxis(sums, -1, 0)
    expected = squares - total**2 / count
    result: Floats = 1 - (within / count) / (expected / (count - 1))
    return np.where(expected > LEAST_ERROR * squares, result, np.nan)


def masi(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the distance of two sets, from 0 (the same) to 1 (nothing in common): 1 - Jaccard's coefficient times
    2/3 where one set contains the other, and 1/3 where both have something of their own.
    """
    if first == second:
        return 0.0
    weight = 2 / 3 if first <= second or second <= first else 1 / 3
    return 1 - weight * len(first & second) / len(first | second)


def _of_sets(codes: Ints, scale: Sequence[Value]) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the sums of alpha with MASI: the distances within units, then how often each set occurs."""
    sets = [value for value in scale if isinstance(value, frozenset)]
    if len(sets) < len(scale):
        raise BadInput("agreement on sets needs sets", "ratings")
    distances = np.array([[masi(a, b) for b in sets] for a in sets]).reshape(len(sets), len(sets))
    counts = _counts(codes, len(sets))
    within = ((counts @ distances) * counts).sum(axis=1) / (counts.sum(axis=1) - 1)

    def alpha(sums: Floats) -> Floats:
        observed, times = sums[..., 0], sums[..., 1:]
        expected = ((times @ distances) * times).sum(axis=-1)
        result: Floats = 1 - (times.sum(axis=-1) - 1) * observed / expected
        return result

    return np.column_stack([within, counts]), alpha


def _of_two(codes: Ints, categories: int) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the sums of Cohen's kappa: agreeing units, then how often either rater gave each value."""
    first, second = (np.eye(categories)[row] for row in codes)
    return np.column_stack([codes[0] == codes[1], first, second]), _cohen


def _cohen(sums: Floats) -> Floats:
    first, second = np.split(sums[..., 1:], 2, axis=-1)
    total = first.sum(axis=-1)
    observed, expected = sums[..., 0] / total, (first * second).sum(axis=-1) / total**2
    result: Floats = (observed - expected) / (1 - expected)
    return result


def _of_pairs(codes: Ints, weights: Floats, coefficient: Coefficient) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the sums of the agreement of pairs and of chance.

    Rated units, those with two ratings, their weighted share of agreeing pairs, the share of each category.
    """
    counts = _counts(codes, len(weights))
    rated = counts.sum(axis=1)
    pairs = np.where(rated > 1, rated * (rated - 1), 1.0)
    agreeing = (counts * (counts @ weights - 1)).sum(axis=1) / pairs
    columns = [rated > 0, rated > 1, np.where(rated > 1, agreeing, 0.0), counts / rated[:, None]]
    return np.column_stack(columns), _chance(coefficient, weights)


def _chance(coefficient: Coefficient, weights: Floats) -> Callable[[Floats], Floats]:
    """Return the coefficient of the sums of `_of_pairs`, by its idea of chance."""
    by_chance = CHANCE[coefficient]

    def corrected(sums: Floats) -> Floats:
        observed, shares = sums[..., 2] / sums[..., 1], sums[..., 3:] / sums[..., :1]
        expected = by_chance(shares, weights)
        result: Floats = (observed - expected) / (1 - expected)
        return result

    return corrected


def _gwets_chance(shares: Floats, weights: Floats) -> Floats:
    size = len(weights)
    result: Floats = weights.sum() / (size * (size - 1)) * (shares * (1 - shares)).sum(axis=-1)
    return result


CHANCE: dict[Coefficient, Callable[[Floats, Floats], Floats]] = {
    "fleiss": lambda shares, weights: (shares**2).sum(axis=-1),
    "gwet": _gwets_chance,
    "percent": lambda shares, weights: np.zeros(shares.shape[:-1]),
}
"""The agreement by chance of coefficients of pairs: of the shares of categories (..., categories), and the weights."""


def _weights(scale: Sequence[Value], level: Level) -> Floats:
    """Return Gwet's weights of agreement (categories x categories): identity, ordinal or quadratic."""
    size = len(scale)
    if level == "nominal" or size < 2:
        return np.eye(size)
    if level == "ordinal":
        apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
        distances = apart * (apart + 1) / 2
    else:
        numbers = np.array(_numbers(scale))
        distances = np.subtract.outer(numbers, numbers) ** 2
    result: Floats = 1 - distances / distances.max()
    return result
