"""How far authors agree who judged the same seats: Krippendorff's alpha for interval data, and Cohen's kappa.

1 is perfect agreement, 0 is agreement by chance. Intervals are over games, since seats of one game depend on each other
(`training.evaluate.agreement`). They cover about their level from ten games on, and kappa's much less where almost all
answers are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import mean

from training.evaluate.agreement import Coefficient, Level, estimate

Game = Sequence[Sequence[float]]
"""The values of one game's seats, each with one value per author."""


@dataclass(frozen=True)
class Agreement:
    """An agreement on one label type over `seats` seats of `games` games; None where it, or its interval, is not
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
    return _agreement(title, games, "krippendorff", "interval")


def kappa(title: str, games: Iterable[Game]) -> Agreement:
    """Return Cohen's kappa of two authors' answers of 0 or 1, the first author's before the second's at each seat.

    It is not defined for fewer than two seats, or where both gave the same answer everywhere.
    """
    pairs = [[pair for pair in game if len(pair) == 2] for game in games]
    return _agreement(title, pairs, "cohen", "nominal")


def _agreement(title: str, games: Iterable[Game], coefficient: Coefficient, level: Level) -> Agreement:
    seats = [(game, values) for game, each in enumerate(games) for values in each]
    ratings = list(zip_longest(*(values for _, values in seats))) or [(), ()]
    result = estimate(coefficient, ratings, [game for game, _ in seats], level=level)
    return Agreement(title, result.value, result.low, result.high, result.units, result.clusters)


def overall(agreements: Iterable[Agreement]) -> float | None:
    """Return the mean over the label types that have a value, or None."""
    values = [agreement.value for agreement in agreements if agreement.value is not None]
    return mean(values) if values else None
