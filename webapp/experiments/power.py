"""Power analysis for the comparison of two arms: participants for a power, and the power for a number of participants.

The results compare the means of groups by Student's t, with the degrees of freedom of the arm with fewer groups
(`training.evaluate.intervals.difference`). Groups are tables of m participants with intraclass correlation ρ, so that
the mean of a group has variance σ² (1 + (m − 1) ρ) / m. With g groups in each arm the statistic has the noncentral t
distribution with 2 g − 2 degrees of freedom; a difference is significant beyond the quantile for g − 1 degrees. The
effect is Cohen's d; of shares p and q it is (p − q) / σ with σ² = (p (1 − p) + q (1 − q)) / 2, a normal approximation.
Raises `BadInput` for values without an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from training.errors import BadInput

LARGEST = 10_000_000
"""More participants than any experiment has; effects that need more have no answer."""


@dataclass(frozen=True)
class Plan:
    """What is compared: `first` and `second` are shares, or both None for means that differ by `effect`."""

    effect: float = 0.5
    first: float | None = None
    second: float | None = None
    alpha: float = 0.05
    people: int = 1
    correlation: float = 0.0

    @property
    def inflation(self) -> float:
        """The design effect."""
        return 1 + (self.people - 1) * self.correlation

    @property
    def distance(self) -> float:
        """The difference in standard deviations of a participant's value; infinite for shares of 0 and 1."""
        if self.first is None or self.second is None:
            return abs(self.effect)
        if self.first == self.second:
            raise BadInput("the shares must differ", "second")
        variance = (self.first * (1 - self.first) + self.second * (1 - self.second)) / 2
        return abs(self.first - self.second) / math.sqrt(variance) if variance else math.inf


def power(plan: Plan, n: int) -> float:
    """The power with n participants in each arm, in whole tables; 0 with fewer than two tables."""
    from scipy import stats

    distance, groups = plan.distance, n // plan.people
    if groups < 2:
        return 0.0
    if math.isinf(distance):
        return 1.0
    shift = distance * math.sqrt(groups * plan.people / (2 * plan.inflation))
    critical = stats.t.ppf(1 - plan.alpha / 2, groups - 1)
    beyond = (stats.nct.sf(critical, 2 * groups - 2, shift), stats.nct.cdf(-critical, 2 * groups - 2, shift))
    return float(sum(part for part in beyond if math.isfinite(part)))


def participants(plan: Plan, target: float) -> int:
    """The fewest participants in each arm with at least this power, in whole tables."""
    low, high = 0, 1
    while power(plan, high * plan.people) < target:
        low, high = high, high * 2
        if high > LARGEST:
            raise BadInput("no number of participants shows an effect that small", "effect")
    return _bisect(low, high, lambda tables: power(plan, tables * plan.people) >= target) * plan.people


def _bisect(low: int, high: int, enough: Callable[[int], bool]) -> int:
    """The smallest number above `low` that is enough; `high` is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
