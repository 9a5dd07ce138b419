"""Bootstrap intervals against a second computation, and their coverage on data of known mean."""

import numpy as np
import pytest

from training.errors import BadInput
from training.evaluate.intervals import interval


def by_hand(values, seed, resamples=20_000):
    """The percentile interval written out: draw scenarios with replacement, average, take the quantiles."""
    generator = np.random.default_rng(seed)
    data = np.asarray(values)
    means = [data[generator.integers(0, len(data), len(data))].mean() for _ in range(resamples)]
    return np.quantile(means, [0.025, 0.975])


def covers(values, seed, truth):
    found = interval(values.tolist(), seed=seed)
    return found.low <= truth <= found.high


@pytest.mark.parametrize("size", [10, 60])
def test_it_agrees_with_a_second_computation(size):
    values = np.random.default_rng(3).gamma(2.0, 1.0, size)  # skewed
    found = interval(values.tolist(), seed=1)
    low, high = by_hand(values, seed=2)
    width = high - low
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(low, abs=0.03 * width)
    assert found.high == pytest.approx(high, abs=0.03 * width)
    assert found.n == size


def test_it_agrees_with_theory_for_two_values():
    # Means of n fair coins: the interval's ends are quantiles of Binomial(n, 1/2) / n; n = 100 gives 0.40 and 0.60.
    found = interval([0.0, 1.0] * 50, seed=0)
    assert (found.low, found.high) == pytest.approx((0.40, 0.60), abs=0.01)


def test_coverage_is_near_its_name():
    generator = np.random.default_rng(0)
    covered = sum(covers(generator.normal(1.0, 2.0, 50), i, 1.0) for i in range(400))
    # 95 % of 400 is 380; three standard errors (13) and the known shortfall at n = 50 (about 1 %, 4) below it.
    assert 363 <= covered <= 393


def test_clustered_data_need_the_scenario_as_unit():
    # Each scenario has its own level; ten games of a scenario say little more than one.
    generator = np.random.default_rng(1)
    clustered = naive = 0
    for i in range(60):
        games = generator.normal(0, 1, (40, 1)) + generator.normal(0, 0.3, (40, 10))
        clustered += covers(games.mean(axis=1), i, 0)
        naive += covers(games.ravel(), i, 0)
    # 94 % and 48 % of 60 are 56 and 29 (the naive standard error is 1/3 of the true one); three standard errors off:
    assert clustered >= 51
    assert naive <= 41


def test_the_same_seed_gives_the_same_interval():
    values = [0.1, 0.4, -0.2, 0.8]
    assert interval(values, seed=7) == interval(values, seed=7)


def test_values_that_never_differ_have_no_width():
    found = interval([0.5] * 8, seed=0)
    assert (found.low, found.mean, found.high, found.n) == (0.5, 0.5, 0.5, 8)
    assert interval([0.3], seed=0).n == 1


def test_nothing_has_no_mean():
    with pytest.raises(BadInput):
        interval([], seed=0)
