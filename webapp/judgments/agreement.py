"""How far authors agree who judged the same seats: Krippendorff's alpha for interval data, and Cohen's kappa.

Alpha is 1 - observed / expected disagreement (Krippendorff, Content Analysis, ch. 12). With squared differences both
are variances: a seat's own, weighted by how many judged it, over that of all values together. Kappa (Cohen 1960) is the
same ratio for two authors and two answers, where the expected disagreement is that of both authors' own shares. 1 is
full agreement, 0 is what chance gives.

Intervals are jackknife intervals with Student's t, leaving out one game at a time, since seats of one game depend on
each other. They cover about their level from ten games on, and kappa's much less where almost all answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Game = Sequence[Sequence[float]]
"""The values of one game's seats, each with one value per author."""
LEVEL = 0.95


@dataclass(frozen=True)
class Agreement:
    """An agreement of one dimension over `seats` seats of `games` games; None where it, or its interval, is not
    defined.
    """

    title: str
    value: float | None
    low: float | None
    high: float | None
    seats: int
    games: int


def alpha(title: str, games: Iterable[Game]) -> Agreement:
    """Return Krippendorff's alpha of the values that the seats of each game got; a seat with one value does not count.

    It is not defined for fewer than two such seats, or if all values are the same.
    """
    shared = [[np.asarray(values, dtype=np.float64) for values in game if len(values) > 1] for game in games]
    shared = [game for game in shared if game]
    pooled = np.concatenate([values for game in shared for values in game]) if shared else np.zeros(0)
    centre = float(pooled.mean()) if pooled.size else 0.0
    rows = [
        [
            sum(len(values) * values.var(ddof=1) for values in game),
            sum(len(values) for values in game),
            sum((values - centre).sum() for values in game),
            sum(((values - centre) ** 2).sum() for values in game),
        ]
        for game in shared
    ]
    seats = sum(map(len, shared))
    defined = seats > 1 and np.ptp(pooled) > 0
    return _agreement(title, np.array(rows), _alpha, seats, defined=bool(defined))


def _alpha(sums: Floats) -> Floats:
    """Alpha of rows of (variance within seats times values, number of values, their sum, their squares)."""
    within, count, total, squares = np.moveaxis(sums, -1, 0)
    result: Floats = 1 - (within / count) / ((squares - total**2 / count) / (count - 1))
    return result


def kappa(title: str, games: Iterable[Game]) -> Agreement:
    """Return Cohen's kappa of two authors' answers of 0 or 1, the first author's before the second's at each seat.

    It is not defined for fewer than two seats, or where both gave the same answer everywhere.
    """
    seats = [np.asarray([pair for pair in game if len(pair) == 2], dtype=np.float64) for game in games]
    seats = [pairs for pairs in seats if len(pairs)]
    rows = [[np.abs(np.diff(pairs)).sum(), len(pairs), *pairs.sum(axis=0)] for pairs in seats]
    count = sum(map(len, seats))
    answers = np.concatenate(seats) if seats else np.zeros((0, 2))
    return _agreement(title, np.array(rows), _kappa, count, defined=count > 1 and bool(np.ptp(answers) > 0))


def _kappa(sums: Floats) -> Floats:
    """Kappa of rows of (disagreements, seats, the first author's yeses, the second's)."""
    differ, count, first, second = np.moveaxis(sums, -1, 0)
    result: Floats = 1 - (differ / count) / ((first * (count - second) + second * (count - first)) / count**2)
    return result


def _agreement(
    title: str, rows: Floats, statistic: Callable[[Floats], Floats], seats: int, *, defined: bool
) -> Agreement:
    """Return a statistic of the games' summed rows with its jackknife interval."""
    if not defined:
        return Agreement(title, None, None, None, seats, len(rows))
    value = float(statistic(rows.sum(axis=0)))
    low, high = _jackknife(rows, statistic, value)
    return Agreement(title, value, low, high, seats, len(rows))


def _jackknife(
    rows: Floats, statistic: Callable[[Floats], Floats], value: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the interval, or None twice where leaving one game out says nothing: too few games, or all are alike."""
    count = len(rows)
    if count < 3:
        return None, None
    with np.errstate(divide="ignore", invalid="ignore"):
        without = statistic(rows.sum(axis=0) - rows)
    if not np.isfinite(without).all() or np.ptp(without) < 1e-12:
        return None, None
    from scipy import stats  # slow to import, for every process of the site

    error = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * error
    return value - half, min(1.0, value + half)


def overall(agreements: Iterable[Agreement]) -> float | None:
    """Return the mean over the dimensions that have a value, or None."""
    values = [agreement.value for agreement in agreements if agreement.value is not None]
    return mean(values) if values else None
