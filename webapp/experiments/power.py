"""Power of a comparison of two arms, in both directions: participants for a power, and the power of participants.

Means: the two-sided t-test of two samples of the same size by the noncentral t distribution; the effect is Cohen's d.
Shares: the two-sided test of two proportions by the normal approximation with pooled variance (Fleiss, Statistical
Methods for Rates and Proportions, section 4.2, without continuity correction). Participants of one table are not
independent: numbers are multiplied by the design effect 1 + (m − 1) ρ for tables of m and the correlation ρ within one.
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


def power(plan: Plan, n: int) -> float:
    """The power with n participants in each arm."""
    independent = n / plan.inflation
    if plan.first is not None and plan.second is not None:
        return _of_shares(plan.first, plan.second, independent, plan.alpha)
    return _of_means(plan.effect, independent, plan.alpha)


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


def _of_means(effect: float, n: float, alpha: float) -> float:
    from scipy import stats

    if n <= 1:
        return 0.0
    degrees, shift = 2 * n - 2, abs(effect) * math.sqrt(n / 2)
    critical = stats.t.ppf(1 - alpha / 2, degrees)
    return float(stats.nct.sf(critical, degrees, shift) + stats.nct.cdf(-critical, degrees, shift))


def _of_shares(first: float, second: float, n: float, alpha: float) -> float:
    from scipy import stats

    if first == second:
        raise BadInput("the shares must differ", "second")
    middle = (first + second) / 2
    pooled = math.sqrt(2 * middle * (1 - middle))
    apart = math.sqrt(first * (1 - first) + second * (1 - second))
    shift = abs(first - second) * math.sqrt(n) - stats.norm.ppf(1 - alpha / 2) * pooled
    if apart == 0:
        return float(shift > 0)
    return float(stats.norm.cdf(shift / apart))
