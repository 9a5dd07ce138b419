"""Krippendorff's alpha and Cohen's kappa, against their definitions, worked examples and raters of known agreement."""

import random
from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from webapp.judgments.results import agreement
from webapp.judgments.results.agreement import Agreement, overall


def alpha(units):
    """The alpha of seats that are each a game of their own."""
    return agreement.alpha("", [[unit] for unit in units]).value


def by_definition(units):
    """1 - observed / expected, as sums of squared differences over ordered pairs of values."""
    shared = [values for values in units if len(values) > 1]
    pooled = [value for values in shared for value in values]
    observed = sum(sum((a - b) ** 2 for a, b in permutations(values, 2)) / (len(values) - 1) for values in shared)
    expected = sum((a - b) ** 2 for a, b in permutations(pooled, 2)) / (len(pooled) - 1)
    return 1 - observed / expected


def test_it_is_the_definition_whatever_is_missing():
    draw = random.Random(4)
    for _ in range(50):
        units = [[draw.randint(0, 10) for _ in range(draw.randint(1, 5))] for _ in range(8)]
        assert alpha(units) == pytest.approx(by_definition(units))
        assert agreement.alpha("", [units[:3], units[3:]]).value == pytest.approx(by_definition(units))


def test_the_example_of_four_observers_and_twelve_units():
    # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: 0.849 for interval data.
    units = [[1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4], [4, 4, 4, 4],
             [1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1], [3]]  # fmt: skip
    assert alpha(units) == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize("units", [[], [[3]], [[3, 4]], [[3], [4], [5, 6]], [[3, 3], [3, 3]]])
def test_it_is_not_defined_without_two_shared_units_and_two_values(units):
    assert alpha(units) is None
    assert agreement.kappa("", [[[min(value, 1) for value in unit]] for unit in units]).value is None


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_raters_of_a_known_reliability(share):
    """Values = a seat's own part + a rater's noise: alpha estimates the share of the variance that is the seat's."""
    draw = np.random.default_rng(7)
    units = draw.normal(0, share**0.5, (6000, 1)) + draw.normal(0, (1 - share) ** 0.5, (6000, 3))
    row = agreement.alpha("", [[unit] for unit in units])
    assert row.value == pytest.approx(share, abs=0.02)
    assert row.low < row.value < row.high
    assert row.high - row.low < 0.04


def yes_or_no(draw, seats, trust=0.8, yes=0.4):
    """Two raters who each see the truth (`yes` in 0.4 of cases) with probability `trust` and otherwise toss a coin."""
    truth = draw.random(seats) < yes
    return np.stack([np.where(draw.random(seats) < trust, truth, draw.random(seats) < 0.5) for _ in "ab"], axis=1)


KAPPA = 0.8**2 * 0.4 * 0.6 / (0.42 * 0.58)
"""Of those raters, by hand: the covariance of both over the variance of one, who says yes in 0.8 x 0.4 + 0.2 x 0.5."""


def test_kappa_of_two_raters_is_the_textbooks():
    draw = np.random.default_rng(3)
    pairs = yes_or_no(draw, 6000)
    row = agreement.kappa("", [[pair] for pair in pairs])
    assert row.value == pytest.approx(cohen_kappa_score(*pairs.T))
    assert row.value == pytest.approx(KAPPA, abs=0.02)
    assert row.low < KAPPA < row.high
    # Fleiss, Statistical Methods (1981), two raters and 50 seats: 20 and 15 agreements, 5 and 10 disagreements.
    table = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert agreement.kappa("", [[pair] for pair in table]).value == pytest.approx(0.4)


@pytest.mark.parametrize("games, raters", [(10, 2), (30, 3)])
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_interval_covers_the_alpha_of_normal_raters(games, raters, share):
    """400 data sets of two seats a game: 95 % within three standard errors of the simulation, which is 0.92 to 0.98."""
    draw = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        units = draw.normal(0, share**0.5, (games, 2, 1)) + draw.normal(0, (1 - share) ** 0.5, (games, 2, raters))
        row = agreement.alpha("", units)
        covered += row.low <= share <= row.high
    assert 0.915 <= covered / 400 <= 0.985


def test_the_interval_covers_the_kappa_of_raters_who_toss_coins():
    draw = np.random.default_rng(6)
    rows = [agreement.kappa("", [[pair] for pair in yes_or_no(draw, 60)]) for _ in range(300)]
    assert 0.9 <= sum(row.low <= KAPPA <= row.high for row in rows) / 300 <= 0.99


def test_the_interval_of_kappa_is_too_narrow_where_yes_is_rare():
    """The docs warn of it. By hand: yes in 0.8 x 0.05 + 0.2 x 0.5 = 0.14, covariance 0.64 x 0.05 x 0.95."""
    draw, kappa = np.random.default_rng(8), 0.64 * 0.05 * 0.95 / (0.14 * 0.86)
    rows = [agreement.kappa("", [[pair] for pair in yes_or_no(draw, 20, yes=0.05)]) for _ in range(300)]
    bounds = [(row.low, row.high) for row in rows if row.low is not None]
    assert len(bounds) > 200
    assert sum(low <= kappa <= high for low, high in bounds) / len(bounds) < 0.9


def test_an_interval_needs_three_games_that_differ():
    two = agreement.alpha("", [[[1, 2]], [[5, 5]]])
    perfect = agreement.alpha("", [[[value, value]] for value in range(5)])
    assert (two.value is not None, two.low, two.high) == (True, None, None)
    assert (perfect.value, perfect.low, perfect.high) == (1, None, None), "no width would claim too much"


def test_the_mean_leaves_out_what_is_not_defined():
    rows = [Agreement(name, value, None, None, 3, 3) for name, value in (("a", 0.5), ("b", None), ("c", 1.0))]
    assert overall(rows) == 0.75
    assert overall([]) is None
