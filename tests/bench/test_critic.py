"""The measurement of the critic on rows whose best R² is known."""

import numpy as np
import pytest

from bench.critic import States, bound, interval, stepwise, summary


def synthetic(r2, scenarios=60, turns=6, size=16, seed=0):
    """Rows with y = a·x + noise, Var(a·x)/Var(y) = r2: no predictor has a larger R²."""
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=size)
    slope /= np.linalg.norm(slope)
    x = rng.normal(size=(scenarios * turns, size))
    y = np.sqrt(r2) * x @ slope + np.sqrt(1 - r2) * rng.normal(size=len(x))
    numbers = np.repeat(np.arange(scenarios), turns)
    return States(x, y, numbers, numbers)


def test_the_interval_by_hand():
    # squared errors 1 and 3 over squared deviations 2 and 6: R² is 1 - 4/8 = 0.5 with and without either scenario
    assert interval(np.array([[1.0, 2.0], [3.0, 6.0]])) == {"r2": 0.5, "low": 0.5, "high": 0.5, "scenarios": 2}
    # 1 and 1 over 2 and 4: left out 0.75 and 0.5; jackknife deviation sqrt(1/2 · 2 · 0.125²) = 0.125, t(1) = 12.706
    scores = interval(np.array([[1.0, 2.0], [1.0, 4.0]]))
    assert scores["r2"] == pytest.approx(2 / 3)
    assert scores["high"] - scores["r2"] == pytest.approx(0.125 * 12.7062, rel=1e-4)


@pytest.mark.parametrize("r2", [0.0, 0.5, 0.9])
def test_the_bound_finds_what_can_be_explained(r2):
    scores = bound(synthetic(r2))
    assert scores["r2"] == pytest.approx(r2, abs=0.12)
    assert scores["low"] <= r2 + 0.05
    assert len(scores["by_scenario"]) == 60


def test_the_default_critic_comes_near_step_by_step():
    states = synthetic(0.6, scenarios=160)
    rows = [stepwise(states, "ridge", 16, order) for order in (0, 1)]
    assert [len(row["value_r2"]) for row in rows] == [10, 10]
    scores = summary(rows)
    assert scores["after_step_5"] >= 0.8 * 0.6
    assert scores["lowest_five_step_mean"] > 0
