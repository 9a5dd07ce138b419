"""Calibration curves and their areas by hand, ties against all their orders, intervals against fresh samples."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import rankdata

from training.errors import BadInput
from training.evaluate.calibration.curves import (
    POINTS,
    Calibration,
    answer_calibration,
    answer_curve,
    search_calibration,
    search_curve,
)

# P(search), and F1 with and without a search: the second and the third question are tied
SCORES, SEARCHED, UNSEARCHED = (0.9, 0.6, 0.6, 0.1), (1.0, 0.5, 1.0, 0.0), (0.0, 0.5, 0.0, 1.0)


def test_the_search_curve_by_hand():
    # without a search: 1.5 of 4; the searches gain 1, then 0.5 each (a gain of 0 or 1 in either order), then lose 1
    calibration = search_calibration(SCORES, SEARCHED, UNSEARCHED)
    assert calibration.curve.shares == (0, 0.25, 0.5, 0.75, 1)
    assert calibration.curve.f1 == pytest.approx((0.375, 0.625, 0.75, 0.875, 0.625))
    assert (calibration.shuffled.shares, calibration.shuffled.f1) == ((0, 1), (0.375, 0.625))
    assert calibration.area.mean == pytest.approx((0.375 / 2 + 0.625 + 0.75 + 0.875 + 0.625 / 2) / 4)
    assert calibration.shuffled_area.mean == pytest.approx(0.5)
    assert calibration.gain.mean == pytest.approx(0.1875)
    assert calibration.top == {}


def test_the_answer_curve_by_hand():
    calibration = answer_calibration((0.9, 0.5, 0.5, 0.1), (1.0, 1.0, 0.0, 0.0))
    assert calibration.curve.shares == (0.25, 0.5, 0.75, 1)
    assert calibration.curve.f1 == pytest.approx((1, 0.75, 2 / 3, 0.5))
    assert (calibration.shuffled.shares, calibration.shuffled.f1) == ((0.25, 1), (0.5, 0.5))
    assert calibration.area.mean == pytest.approx((1 + 0.75 + 2 / 3 + 0.5) / 4)
    assert calibration.shuffled_area.mean == pytest.approx(0.5)
    assert calibration.gain.mean == pytest.approx(0.75 - 1 / 48 - 0.5)
    # 10 % and 20 % of four questions are rounded up to one
    assert {percent: top.mean for percent, top in calibration.top.items()} == pytest.approx({10: 1, 20: 1, 50: 0.75})


@pytest.mark.parametrize("scores", [(0.5, 0.5, 0.5, 0.2, 0.9), (0.1, 0.3, 0.3, 0.1, 0.3), (0.4,) * 5])
def test_ties_have_the_mean_over_all_their_orders(scores):
    rng = np.random.default_rng(3)
    a, b = rng.random(5), rng.random(5)
    orders = [order for order in permutations(range(5)) if all(np.diff([scores[at] for at in order]) <= 0)]
    searched = [[np.where(np.isin(range(5), order[:count]), a, b).mean() for count in range(6)] for order in orders]
    answered = [[b[list(order[:count])].mean() for count in range(1, 6)] for order in orders]
    assert search_curve(np.array(scores), a, b) == pytest.approx(np.mean(searched, axis=0))
    assert answer_curve(np.array(scores), b) == pytest.approx(np.mean(answered, axis=0))


def test_the_area_is_a_sum_over_mid_ranks():
    # the question of rank r is searched for at shares above r / n, by the trapezoidal rule half a step earlier
    rng = np.random.default_rng(1)
    n = 60
    scores, a, b = rng.integers(0, 12, n) / 12, rng.random(n), rng.random(n)
    weights = (n - rankdata(-scores) + 0.5) / n
    calibration = search_calibration(scores, a, b)
    assert calibration.area.mean == pytest.approx(b.mean() + ((a - b) * weights).mean())
    assert calibration.gain.mean == pytest.approx(((a - b) * (weights - 0.5)).mean())


def test_resamples_are_computed_at_once_as_one_by_one():
    rng = np.random.default_rng(2)
    scores, a, b = rng.integers(0, 5, (7, 30)) / 5, rng.random((7, 30)), rng.random((7, 30))
    one_by_one = [search_curve(*rows) for rows in zip(scores, a, b, strict=True)]
    assert search_curve(scores, a, b) == pytest.approx(np.array(one_by_one))
    assert answer_curve(scores, b) == pytest.approx(
        np.array([answer_curve(*rows) for rows in zip(scores, b, strict=True)])
    )


def draw(rng, n=200):
    """Scores that rank searches by their worth, with noise."""
    worth = rng.random(n)
    searched = (rng.random(n) < 0.2 + 0.6 * worth).astype(float)
    unsearched = (rng.random(n) < 0.4).astype(float)
    return worth + rng.normal(0, 0.3, n), searched, unsearched


@pytest.mark.parametrize(
    "of",
    [
        search_calibration,
        lambda scores, searched, unsearched: answer_calibration(scores, searched),
    ],
)
def test_intervals_are_as_wide_as_fresh_samples_say(of, monkeypatch):
    rng = np.random.default_rng(0)
    measured = of(*draw(rng))
    monkeypatch.setattr("training.evaluate.calibration.curves.RESAMPLES", 10)  # only their estimates are read
    fresh = [of(*draw(rng)) for _ in range(300)]
    for name in ("area", "shuffled_area", "gain"):
        interval = getattr(measured, name)
        spread = 2 * 1.96 * np.std([getattr(each, name).mean for each in fresh])
        assert interval.high - interval.low == pytest.approx(spread, rel=0.3), name
        assert (interval.n, interval.level) == (200, 0.95)
    assert measured.gain.low > 0, "the scores rank the questions"


def test_a_search_that_is_worth_the_same_everywhere_has_no_gain():
    calibration = search_calibration([0.1, 0.7, 0.3, 0.9], [1.0] * 4, [0.25] * 4)
    assert (calibration.gain.low, calibration.gain.mean, calibration.gain.high) == pytest.approx((0, 0, 0))


def test_one_question_has_intervals_without_width():
    calibration = answer_calibration([0.4], [1.0])
    assert (calibration.curve.shares, calibration.curve.f1) == ((1.0,), (1.0,))
    assert (calibration.area.low, calibration.area.high, calibration.area.n) == (1, 1, 1)


def test_long_curves_are_stored_with_few_points_and_both_ends():
    rng = np.random.default_rng(5)
    scores, a, b = rng.random(501), rng.random(501), rng.random(501)
    curve = search_calibration(scores, a, b).curve
    assert len(curve.shares) == POINTS + 1
    assert (curve.shares[0], curve.shares[-1]) == (0, 1)
    whole = search_curve(scores, a, b)
    assert curve.f1 == pytest.approx([whole[round(share * 501)] for share in curve.shares])


def test_the_same_seed_gives_the_same_intervals_and_the_record_is_read_back():
    calibration = answer_calibration(SCORES, SEARCHED, seed=4)
    assert calibration == answer_calibration(SCORES, SEARCHED, seed=4)
    assert Calibration.from_dict(calibration.to_dict()) == calibration


@pytest.mark.parametrize(
    "columns, why",
    [(((), (), ()), "and a question"), (((0.1,), (1.0, 0.0), (0.0,)), "every"), (((0.1,), (np.nan,), (0.0,)), "NaN")],
)
def test_what_is_no_table_of_numbers_is_refused(columns, why):
    with pytest.raises(BadInput, match=why):
        search_calibration(*columns)
