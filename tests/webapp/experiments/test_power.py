"""Power against published numbers and against each other."""

from __future__ import annotations

import pytest

from training.errors import BadInput
from webapp.experiments.power import Plan, participants, power


@pytest.mark.parametrize("effect, wanted", [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_means_as_in_cohens_table(effect: float, wanted: int) -> None:
    """Cohen, Statistical Power Analysis (1988), table 2.4.1: power 0.80, two-sided α = 0.05 (393.4 for d = 0.2)."""
    assert participants(Plan(effect), 0.8) == wanted


def test_shares_worked_by_hand() -> None:
    """p = 0.50 and 0.65: (1.95996 √(2 · 0.575 · 0.425) + 0.84162 √(0.25 + 0.2275))² / 0.15² = 169.3."""
    assert participants(Plan(first=0.5, second=0.65), 0.8) == 170


def test_both_directions_agree() -> None:
    for plan in (Plan(0.37), Plan(first=0.2, second=0.3, alpha=0.01), Plan(0.5, people=2, correlation=0.3)):
        n = participants(plan, 0.9)
        assert power(plan, n) >= 0.9 > power(plan, n - plan.people)


def test_tables_of_dependent_people_need_the_design_effect() -> None:
    """Pairs with ρ = 0.5: 64 · 1.5 = 96; with ρ = 1 a pair is one person, and 64 pairs are 128."""
    assert participants(Plan(0.5, people=2, correlation=0.5), 0.8) == 96
    assert participants(Plan(0.5, people=2, correlation=1.0), 0.8) == 128
    assert participants(Plan(0.5, people=3), 0.8) == 66  # whole tables


def test_equal_shares_have_no_answer() -> None:
    with pytest.raises(BadInput, match="differ"):
        participants(Plan(first=0.5, second=0.5), 0.8)


def test_certain_shares() -> None:
    assert power(Plan(first=0.0, second=1.0), 10) == 1.0
