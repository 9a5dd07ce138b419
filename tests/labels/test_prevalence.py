"""Errors of a classifier and the true share: by hand, by theorems, and how often the intervals hold in simulations."""

import numpy as np
import pytest
from scipy import stats

from training.errors import BadInput
from training.labels.prevalence import ErrorRates, Rate, agreement, error_rates, rate, true_prevalence

MANY = 1e12


def known(share, n=MANY):
    return Rate(share=share, low=share, high=share, n=n)


def test_a_share_of_two_dialogues_by_hand():
    # 1 of 2 and 3 of 4: share 2/3, residuals ∓(1/3)/6, variance 2·(2/324)/1 = 1/81; 2/9 over 1/81 is 18, and Student's
    # t is 2.5706 with five degrees of freedom and 12.7062 with one (tables): 18·(2.5706/12.7062)² = 0.7367
    estimate = rate([(1, 2), (3, 4)])
    assert estimate.share == pytest.approx(2 / 3)
    assert estimate.n == pytest.approx(0.7367, abs=1e-4)


def test_dialogues_without_turns_change_nothing():
    assert rate([(1, 2), (0, 0), (3, 4), (0, 0)]) == rate([(1, 2), (3, 4)])


def test_a_share_that_no_turn_has_gets_the_exact_bound():
    estimate = rate([(0, 4), (0, 6)])
    assert (estimate.share, estimate.low, estimate.n) == (0.0, 0.0, 10.0)
    assert estimate.high == pytest.approx(1 - 0.025 ** (1 / 10))
    full = rate([(4, 4), (6, 6)])
    assert (full.low, full.high) == (pytest.approx(0.025 ** (1 / 10)), 1.0)


def test_dialogues_of_one_turn_are_independent_turns():
    # p(1 − p) over p(1 − p)/(n − 1): one turn fewer, and the exact interval of 9·0.3 in 9
    estimate = rate([(1, 1)] * 3 + [(0, 1)] * 7)
    assert estimate.n == pytest.approx(9)
    assert (estimate.low, estimate.high) == pytest.approx(
        (stats.beta.ppf(0.025, 2.7, 7.3), stats.beta.ppf(0.975, 3.7, 6.3))
    )


def test_the_effective_number_is_at_most_the_number():
    assert rate([(1, 2), (2, 4), (3, 6)]).n == 12


@pytest.mark.parametrize("counts", [[], [(1, 2)], [(1, 2), (0, 0)]])
def test_one_dialogue_has_no_interval(counts):
    with pytest.raises(BadInput, match="two dialogues"):
        rate(counts)


def test_errors_are_counted_by_label():
    seen = [True, False, True, False, True, False]
    true = [True, True, False, False, True, False]
    errors = error_rates(seen, true, ["a", "b", "a", "b", "b", "a"])
    assert errors.sensitivity.share == pytest.approx(2 / 3)
    assert errors.specificity.share == pytest.approx(2 / 3)
    assert errors.sensitivity == rate([(1, 1), (1, 2)])
    assert errors.specificity == rate([(1, 2), (1, 1)])


def test_without_errors_the_interval_is_agresti_and_coulls():
    perfect = ErrorRates(sensitivity=known(1.0), specificity=known(1.0))
    # 20 turns, half of them: (10 + 1.9207)/23.8415 = 0.5, and 1.95996·√(0.25/23.8415) = 0.2007
    estimate = true_prevalence(known(0.5, 20), perfect)
    assert (estimate.share, estimate.low, estimate.high) == pytest.approx((0.5, 0.2993, 0.7007), abs=1e-4)


def test_the_interval_by_hand():
    errors = ErrorRates(sensitivity=known(0.9, 50), specificity=known(0.9, 100))
    estimate = true_prevalence(known(0.3, 100), errors)
    assert estimate.share == pytest.approx(0.25)  # (0.3 + 0.9 − 1)/0.8
    # 31.92073/103.84146 = 0.307399 seen, 46/52 = 0.884615 and 91/102 = 0.892157; their sum less 1 is 0.776772, so the
    # centre is 0.256904. Variances of the latter two: 0.00196290 and 0.00094326. Shift 7.682918·(0.256904·0.00196290 −
    # 0.743096·0.00094326) = −0.001511; variance 0.00205029 + 0.00012955 + 0.00052086; half the width 0.131127
    assert (estimate.low, estimate.high) == pytest.approx((0.124266, 0.386520), abs=2e-5)


def test_a_classifier_that_guesses_says_nothing():
    guess = ErrorRates(sensitivity=known(0.6, 40), specificity=known(0.45, 40))
    estimate = true_prevalence(known(0.58, 500), guess)
    assert (estimate.low, estimate.high) == (0.0, 1.0)


def test_an_estimate_stays_a_share():
    errors = ErrorRates(sensitivity=known(0.9, 300), specificity=known(0.9, 300))
    nothing, everything = true_prevalence(known(0.02, 300), errors), true_prevalence(known(0.97, 300), errors)
    assert (nothing.share, everything.share) == (0.0, 1.0)


def test_errors_that_no_share_explains_leave_it_unknown():
    """A classifier with 10 % false positives would see the label in far more than 2 % of any turns."""
    errors = ErrorRates(sensitivity=known(0.9, 300), specificity=known(0.9, 300))
    # 7.92073/303.84146 = 0.026069 seen, 271/302 = 0.897351 twice, gain 0.794702: the centre is −0.096363, the shift
    # 7.682918·0.00030501·(−0.096363 − 1.096363) = −0.002795, half the width 1.959964·√0.00045301/0.794702 = 0.052493
    estimate = true_prevalence(known(0.02, 300), errors)
    assert (estimate.share, estimate.low, estimate.high) == (0.0, 0.0, 1.0), "instead of −0.15 to −0.05"
    # 24 of 300 are compatible: 0.085310 seen, the centre is −0.021818, the shift −0.002446, half the width 0.059162
    estimate = true_prevalence(known(0.08, 300), errors)
    assert (estimate.low, estimate.high) == pytest.approx((0.0, 0.034898), abs=2e-5)


def clustered(rng, dialogues, share, spread):
    """Flags of ten turns each; dialogues differ in their share by a beta distribution with `spread` = α + β."""
    return rng.random((dialogues, 10)) < rng.beta(share * spread, (1 - share) * spread, (dialogues, 1))


def simulated(rng, share, sensitivity, specificity, spread):
    """Return the corrected share of 60 dialogues by the errors in 80 others, and the same with turns as dialogues."""
    judged = []
    for dialogues in (60, 80):
        true = clustered(rng, dialogues, share, spread)
        right = np.where(
            true, clustered(rng, dialogues, sensitivity, spread), clustered(rng, dialogues, specificity, spread)
        )
        judged.append((true, true == right))
    (_, observed), (true, seen) = judged
    names = np.repeat(np.arange(80), 10)
    by_dialogue = true_prevalence(
        rate([(int(row.sum()), 10) for row in observed]), error_rates(seen.ravel(), true.ravel(), names)
    )
    by_turn = true_prevalence(
        rate([(int(flag), 1) for flag in observed.ravel()]), error_rates(seen.ravel(), true.ravel(), np.arange(800))
    )
    return by_dialogue, by_turn


@pytest.mark.parametrize(
    "share, sensitivity, specificity, spread", [(0.2, 0.7, 0.93, 5.0), (0.06, 0.5, 0.95, 8.0), (0.5, 0.8, 0.8, 3.0)]
)
def test_intervals_of_dialogues_cover_the_true_prevalence(share, sensitivity, specificity, spread):
    rng = np.random.default_rng(1)
    pairs = [simulated(rng, share, sensitivity, specificity, spread) for _ in range(400)]
    by_dialogue, by_turn = (
        np.mean([each.low <= share <= each.high for each in estimates]) for estimates in zip(*pairs, strict=True)
    )
    # of 400 intervals at 95 % fewer than 93 % cover with a chance of about 3 %, and the simulation has one seed
    assert by_dialogue >= 0.93
    assert by_turn < by_dialogue - 0.02  # turns of a dialogue are not independent


def test_agreement_by_hand():
    # ten turns of two dialogues: 3 both, 1 seen alone, 2 missed, 4 neither
    seen = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    true = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
    measured = agreement(seen, true, ["a", "b"] * 5)
    assert measured.f1.share == pytest.approx(6 / 9)
    assert measured.right.share == pytest.approx(0.7)
    # by chance: 0.5·0.4 + 0.5·0.6 = 0.5, so that κ = 0.2 / 0.5
    assert measured.kappa == pytest.approx(0.4)
    assert (measured.share, measured.majority) == (0.5, 0.5)
    assert measured.always == pytest.approx(2 / 3)
    assert measured.f1.low < 6 / 9 < measured.f1.high


def test_the_interval_of_f1_covers_what_more_dialogues_would_show():
    # labels cluster in dialogues; the expected F1 is that of 40 000 dialogues of the same kind
    rng = np.random.default_rng(5)

    def drawn(dialogues):
        rates = rng.beta(1, 3, dialogues).repeat(8)
        true = rng.random(len(rates)) < rates
        seen = np.where(true, rng.random(len(rates)) < 0.7, rng.random(len(rates)) < 0.1)
        return seen, true, np.arange(dialogues).repeat(8)

    expected = agreement(*drawn(40_000)).f1.share
    intervals = [agreement(*drawn(60)).f1 for _ in range(400)]
    covered = np.mean([each.low <= expected <= each.high for each in intervals])
    assert 0.92 <= covered <= 0.99  # 0.95 and three standard errors of 400 draws
