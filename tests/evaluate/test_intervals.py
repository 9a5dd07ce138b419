"""Intervals against hand computations and theorems, and their coverage on data of known mean."""

import numpy as np
import pytest
from scipy import stats

from training.errors import BadInput
from training.evaluate.intervals import CAUTION, Interval, interval, over_scenarios, over_seeds, paired

REPLICATIONS = 2000
"""Enough that 95 % is measured with a standard error of 0.5 points: 93 and 97 % are four of them away."""


def coverage(data, truth, bounds):
    """The share of rows whose interval holds the truth."""
    return np.mean([low <= truth <= high for low, high in map(bounds, data.tolist())])


@pytest.mark.parametrize("bounds", [over_seeds, over_scenarios])
def test_students_t_by_hand(bounds):
    # mean 2, standard deviation 1, standard error 1 / sqrt(3); t with two degrees of freedom is 4.302653 (tables)
    low, high = bounds([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), abs=1e-5)
    # and 2.919986 at 90 %
    assert bounds([1.0, 2.0, 3.0], level=0.9)[1] == pytest.approx(2 + 2.919986 / 3**0.5, abs=1e-5)


@pytest.mark.parametrize("bounds", [over_seeds, over_scenarios])
@pytest.mark.parametrize("n", [3, 5, 10, 30])
def test_coverage_on_normal_data(bounds, n):
    data = np.random.default_rng(n).normal(1.0, 2.0, (REPLICATIONS, n))
    assert 0.93 <= coverage(data, 1.0, bounds) <= 0.97


def test_skewed_data_are_covered_less_and_the_number_says_so():
    data = np.random.default_rng(0).lognormal(0, 1, (1000, 10))
    assert coverage(data, float(np.exp(0.5)), over_scenarios) < 0.9
    assert interval([1.0] * 29).few
    assert not interval([1.0] * 30).few
    assert "fewer than 30" in CAUTION


def test_the_scenario_is_the_unit_where_games_share_its_level():
    generator = np.random.default_rng(1)
    games = generator.normal(0, 1, (300, 40, 1)) + generator.normal(0, 0.3, (300, 40, 10))
    assert coverage(games.mean(axis=2), 0, over_scenarios) >= 0.92
    # the naive standard error is a third of the true one: 48 %
    assert coverage(games.reshape(300, 400), 0, over_scenarios) < 0.6


@pytest.mark.parametrize(
    "successes, n, low, high",
    [
        (0, 30, 0, 1 - 0.025 ** (1 / 30)),  # P(none of 30) = (1 - p)^30 = 0.025
        (30, 30, 0.025 ** (1 / 30), 1),
        (1, 2, 1 - 0.975**0.5, 0.975**0.5),  # P(at least one of 2) = 0.025, and at most one
        (0, 1, 0, 0.975),
    ],
)
def test_proportions_are_exact(successes, n, low, high):
    values = [1.0] * successes + [0.0] * (n - successes)
    assert over_scenarios(values) == pytest.approx((low, high))
    assert interval(values).mean == successes / n


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_proportions_are_covered(share):
    hits = np.random.default_rng(3).binomial(30, share, 300)
    data = [[1.0] * k + [0.0] * (30 - k) for k in hits]
    assert np.mean([low <= share <= high for low, high in map(over_scenarios, data)]) >= 0.93


def test_a_proportion_at_its_end_always_has_a_width():
    for value in (0.0, 1.0):
        estimate = interval([value] * 12)
        assert estimate.low < estimate.high
        difference = paired([value] * 12, [0.0] * 12)
        assert difference.low < difference.mean + 1e-12
        assert difference.low < difference.high


def test_a_difference_that_never_varies_is_bounded_by_what_could_be_unseen():
    # No scenario of 30 differs: so do at most 11.6 % of all (exact, 95 %), by 1 each at most.
    unseen = 1 - 0.025 ** (1 / 30)
    same = paired([0.0] * 30, [0.0] * 30)
    assert (same.low, same.mean, same.high) == pytest.approx((-unseen, 0, unseen))
    always = paired([1.0] * 30, [0.0] * 30)
    assert (always.low, always.high) == pytest.approx((1 - 2 * unseen, 1))
    points = paired([5.0] * 30, [3.0] * 30)  # no bounds are known: no width
    assert (points.low, points.mean, points.high) == (2, 2, 2)


def test_equal_values_on_a_scale_are_no_proportion():
    """SOTOPIA's secrets go from -10 to 0: a mean of 0 in all scenarios may be lower in others, never higher."""
    unseen = 1 - 0.025 ** (1 / 30)
    secrets = interval([0.0] * 30, scale=(-10, 0))
    assert (secrets.low, secrets.mean, secrets.high) == pytest.approx((-10 * unseen, 0, 0))
    ones = interval([1.0, 0.0, 1.0], scale=(-10, 0))
    assert (ones.low, ones.high) == pytest.approx(over_seeds([1.0, 0.0, 1.0]))
    gap = paired([0.0] * 30, [0.0] * 30, scale=(-10, 0))
    assert (gap.low, gap.high) == pytest.approx((-10 * unseen, 10 * unseen))


def test_a_single_scenario_has_the_width_of_its_scale():
    assert (interval([1.0]).low, interval([1.0]).high) == pytest.approx((0.025, 1))
    estimate = paired([0.7], [0.2])  # 0.975 of all scenarios may differ otherwise, by -1 to 1
    assert (estimate.low, estimate.mean, estimate.high) == pytest.approx((0.5 - 0.975 * 1.5, 0.5, 0.5 + 0.975 * 0.5))


def test_a_paired_difference_is_students_t_of_the_differences():
    a, b = np.random.default_rng(2).random((2, 20))
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    estimate = paired(a.tolist(), b.tolist())
    assert (estimate.low, estimate.high, estimate.n) == pytest.approx((expected.low, expected.high, 20))


def test_values_that_never_differ_are_finite():
    for values in ([0.5] * 8, [0.1] * 3, [7.0, 7.0]):
        assert over_scenarios(values) == over_seeds(values) == pytest.approx((values[0], values[0]))
    assert interval([0.3]) == Interval(mean=0.3, low=0.3, high=0.3, n=1)


def test_nothing_is_drawn():
    values = [0.1, 0.4, -0.2, 0.8]
    assert over_scenarios(values, seed=7) == over_scenarios(values, seed=8)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_what_has_no_interval_over_seeds_is_refused(values):
    with pytest.raises(BadInput):
        over_seeds(values)


@pytest.mark.parametrize("values", [[], [0.3], [1.0, float("nan")]])
def test_what_has_no_interval_over_scenarios_is_refused(values):
    with pytest.raises(BadInput):
        over_scenarios(values)
    with pytest.raises(BadInput):
        paired(values, [*values, 1.0])


def test_intervals_of_old_files_are_read():
    old = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 24, "level": 0.95}
    assert Interval.from_dict(old).to_dict() == old
