"""Power against published numbers, against simulated experiments, and in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from training.errors import BadInput
from webapp.experiments.power import Plan, participants, power
from webapp.experiments.results import difference


@pytest.mark.parametrize("effect, cohen", [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_means_need_one_more_than_in_cohens_table(effect: float, cohen: int) -> None:
    """Cohen, Statistical Power Analysis (1988), table 2.4.1: power 0.80, two-sided α = 0.05, with 2 n − 2 degrees.

    The results use n − 1, as their arms may differ in variance: t is then 1.998 instead of 1.979 with 64 per arm, and n
    grows by the square of it, by (1.998 + 0.85)² / (1.979 + 0.85)² = 1.013.
    """
    assert participants(Plan(effect), 0.8) == cohen + 1


def test_shares_worked_by_hand() -> None:
    """p = 0.50 and 0.65: (1.95996 + 0.84162)² (0.25 + 0.2275) / 0.15² = 166.6, and about two more for t."""
    assert participants(Plan(first=0.5, second=0.65), 0.8) == 169


@pytest.mark.parametrize(
    "plan, n",
    [
        (Plan(0.8), 26),
        (Plan(1.0, people=2, correlation=0.3), 18),
        (Plan(1.0, people=4, correlation=0.3), 40),
        (Plan(first=0.3, second=0.7), 24),
    ],
)
def test_simulated_experiments_show_the_difference_as_often(plan: Plan, n: int) -> None:
    """The interval of the results page, over groups of normal values or of answers, excludes 0 as often as stated."""
    rng, experiments, groups = np.random.default_rng(0), 3000, n // plan.people

    def arm(mean: float) -> np.ndarray:
        if plan.first is not None:
            return rng.binomial(1, mean, size=(experiments, groups)).astype(float)
        common = rng.normal(0, np.sqrt(plan.correlation), size=(experiments, groups, 1))
        individual = rng.normal(0, np.sqrt(1 - plan.correlation), size=(experiments, groups, plan.people))
        return mean + (common + individual).mean(axis=2)

    low, high = (plan.first, plan.second) if plan.first is not None else (0.0, plan.effect)
    shown = 0
    for first, second in zip(arm(float(low or 0)), arm(float(high or 0)), strict=True):
        interval = difference(list(second), list(first))
        assert interval is not None
        shown += not interval.low <= 0 <= interval.high
    # the standard error of a share of 3,000 is at most 0.0091
    assert shown / experiments == pytest.approx(power(plan, n), abs=0.025)


def test_both_directions_agree() -> None:
    for plan in (Plan(0.37), Plan(first=0.2, second=0.3, alpha=0.01), Plan(0.5, people=2, correlation=0.3)):
        n = participants(plan, 0.9)
        assert power(plan, n) >= 0.9 > power(plan, n - plan.people)


def test_tables_of_dependent_people_need_the_design_effect() -> None:
    """With ρ = 1 a pair is one person: 65 pairs are 130. With ρ = 0.5 a pair counts as 4/3 people, at fewer degrees."""
    assert participants(Plan(0.5, people=2, correlation=1.0), 0.8) == 2 * participants(Plan(0.5), 0.8)
    assert 65 * 1.5 <= participants(Plan(0.5, people=2, correlation=0.5), 0.8) <= 65 * 1.5 + 2
    assert participants(Plan(0.5, people=3), 0.8) % 3 == 0  # whole tables


def test_fewer_than_two_tables_show_nothing() -> None:
    assert power(Plan(5.0, people=4), 7) == 0.0
    assert 0.9 < power(Plan(20.0), 2) <= 1.0
    assert power(Plan(10.0), 10_000) == 1.0


def test_equal_shares_have_no_answer() -> None:
    with pytest.raises(BadInput, match="differ"):
        participants(Plan(first=0.5, second=0.5), 0.8)


def test_certain_shares() -> None:
    assert power(Plan(first=0.0, second=1.0), 10) == 1.0
