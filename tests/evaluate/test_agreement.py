"""Coefficients of agreement, against published examples, second implementations and raters whose alpha is known."""

import random
from collections import Counter
from itertools import combinations, permutations
from typing import get_args

import numpy as np
import pytest
from nltk.metrics.agreement import AnnotationTask
from nltk.metrics.distance import interval_distance
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from training.errors import BadInput
from training.evaluate.agreement import (
    Coefficient,
    cluster_sums,
    cohen,
    estimate,
    fleiss,
    gwet,
    krippendorff,
    masi,
    percent,
)

N = None
# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]
# Gwet, Handbook of Inter-Rater Reliability (4th edition, 2014), page 120: four raters, twelve subjects.
GWET = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, N],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 3],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]
# Fleiss, Measuring nominal scale agreement among many raters (1971), table 1: of 30 patients how many of six
# psychiatrists chose depression, personality disorder, schizophrenia, neurosis and another diagnosis.
PATIENTS = """00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031 00501 30012
51000 02040 10203 00006 01005 02013 20040 10041 05010 40002 02040 10500 00060"""


def of_counts(rows):
    """Ratings by six raters of which only the counts per unit are known: which rater said what does not matter."""
    units = [[category for category, times in enumerate(row) for _ in range(int(times))] for row in rows]
    return list(zip(*units, strict=True))


def of_table(table):
    """The ratings of two raters by their contingency table."""
    cells = [(i, j) for i, row in enumerate(table) for j, times in enumerate(row) for _ in range(times)]
    return [list(rater) for rater in zip(*cells, strict=True)]


@pytest.mark.parametrize("level, alpha", [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_krippendorffs_example(level, alpha):
    assert krippendorff(OBSERVERS, level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_krippendorffs_example_of_two_observers():
    # the same paper, section A (two values: 0.095) and section B (five values: 0.692)
    binary = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
    assert krippendorff(binary) == pytest.approx(0.095, abs=5e-4)
    assert krippendorff([list("aabbdcccedda"), list("babbbccceddd")]) == pytest.approx(0.692, abs=5e-4)


def test_kappa_of_fleiss_example():
    assert fleiss(of_counts(PATIENTS.split())) == pytest.approx(0.430, abs=5e-4)


def test_kappa_of_cohens_example():
    # Cohen, A coefficient of agreement for nominal scales (1960), table 1: 200 cases, three diagnoses
    first, second = of_table([[88, 10, 2], [14, 40, 6], [18, 10, 12]])
    assert cohen(first, second) == pytest.approx(0.492, abs=5e-4)


@pytest.mark.parametrize("level, coefficient", [("nominal", 0.775), ("ordinal", 0.899), ("interval", 0.914)])
def test_ac1_and_ac2_of_gwets_example(level, coefficient):
    assert gwet(GWET, level) == pytest.approx(coefficient, abs=5e-4)


def test_the_other_coefficients_of_gwets_example():
    assert percent(GWET) == pytest.approx(0.818, abs=5e-4)
    assert fleiss(GWET) == pytest.approx(0.761, abs=5e-4)
    assert krippendorff(GWET) == pytest.approx(0.743, abs=5e-4)


def test_ac1_of_gwets_example_of_two_abstractors():
    # the same book: 100 pregnancies by type, AC1 0.849, with ordinal weights 0.925, with quadratic ones 0.940
    first, second = of_table([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
    values = [gwet([first, second], level) for level in ("nominal", "ordinal", "interval")]
    assert values == pytest.approx([0.849, 0.925, 0.940], abs=5e-4)


def drawn(draw, raters, units, values, missing=0.0):
    return [[None if draw.random() < missing else draw.choice(values) for _ in range(units)] for _ in range(raters)]


@pytest.mark.parametrize("seed", range(10))
def test_second_implementations_agree(seed):
    draw = random.Random(seed)
    ratings = drawn(draw, 3, 15, "abcd", missing=0.3)
    triples = [(r, u, value) for r, row in enumerate(ratings) for u, value in enumerate(row) if value is not None]
    assert krippendorff(ratings) == pytest.approx(AnnotationTask(triples).alpha())
    numbers = drawn(draw, 3, 15, [0, 1, 2.5, 7], missing=0.3)
    triples = [(r, u, value) for r, row in enumerate(numbers) for u, value in enumerate(row) if value is not None]
    task = AnnotationTask(triples, distance=interval_distance)
    assert krippendorff(numbers, "interval") == pytest.approx(task.alpha())
    first, second = drawn(draw, 2, 20, "abc")
    assert cohen(first, second) == pytest.approx(cohen_kappa_score(first, second))
    full = drawn(draw, 4, 15, "abc")
    table = [(r, u, value) for r, row in enumerate(full) for u, value in enumerate(row)]
    assert percent(full) == pytest.approx(AnnotationTask(table).avg_Ao())
    assert fleiss(full) == pytest.approx(AnnotationTask(table).pi())  # of many raters: Fleiss' kappa


def by_definition(ratings, distance):
    """1 - observed / expected, over ordered pairs of values, each pair of a unit with weight 1 / (values - 1)."""
    units = [[value for value in unit if value is not None] for unit in zip(*ratings, strict=True)]
    shared = [unit for unit in units if len(unit) > 1]
    pooled = Counter(value for unit in shared for value in unit)
    apart = distance(pooled)
    observed = sum(sum(apart(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in shared)
    expected = sum(apart(a, b) * pooled[a] * pooled[b] for a, b in permutations(pooled, 2))
    return 1 - observed / (expected / (pooled.total() - 1))


@pytest.mark.parametrize("seed", range(5))
def test_ordinal_alpha_is_its_definition(seed):
    """The distance of c and k is the square of the sum of counts from c to k, less half of those of c and of k."""

    def distance(pooled):
        def apart(a, b):
            between = sum(times for value, times in pooled.items() if min(a, b) <= value <= max(a, b))
            return (between - (pooled[a] + pooled[b]) / 2) ** 2 if a != b else 0

        return apart

    ratings = drawn(random.Random(seed), 3, 15, [1, 2, 4, 9], missing=0.3)
    assert krippendorff(ratings, "ordinal") == pytest.approx(by_definition(ratings, distance))


RATES = (0.1, 0.2, 0.4)


def synthetic(rng, units, values):
    truth = rng.integers(0, values, units)
    return [np.where(rng.random(units) < e, (truth + rng.integers(1, values, units)) % values, truth) for e in RATES]


@pytest.mark.parametrize("values", [2, 4])
def test_raters_of_known_alpha(values):
    """The truth is one of k values, each as often, and rater r states one of the others, each as often, in a share e_r.

    Raters r and s agree where both are right or both make the same one of k - 1 errors: (1 - e_r)(1 - e_s) +
    e_r e_s / (k - 1). All values are stated as often, so two values differ by chance in a share 1 - 1/k, and alpha is
    1 - (1 - the mean agreement of pairs) / (1 - 1/k). Cohen's kappa of r and s is the same with their own agreement,
    Fleiss' kappa is alpha, and so is AC1, whose chance is (k - 1)^-1 times the sum of (1/k)(1 - 1/k): 1/k.
    """
    ratings = [row.tolist() for row in synthetic(np.random.default_rng(5), 8000, values)]
    pairs = {
        (r, s): (1 - RATES[r]) * (1 - RATES[s]) + RATES[r] * RATES[s] / (values - 1)
        for r, s in combinations(range(3), 2)
    }
    known = 1 - (1 - sum(pairs.values()) / 3) / (1 - 1 / values)
    for coefficient in (krippendorff, fleiss, gwet):
        assert coefficient(ratings) == pytest.approx(known, abs=0.02)
    assert percent(ratings) == pytest.approx(sum(pairs.values()) / 3, abs=0.02)
    kappa = 1 - (1 - pairs[0, 2]) / (1 - 1 / values)
    assert cohen(ratings[0], ratings[2]) == pytest.approx(kappa, abs=0.02)


def test_interval_raters_of_known_alpha():
    """Value = the unit's own part + a rater's noise: alpha is the share of the variance that is the unit's, here 0.7.

    Of values that many raters state of normal units, ordinal alpha is the same on ranks: their correlation is
    6 / pi asin(0.7 / 2) (Pearson 1907), which is 0.683.
    """
    rng = np.random.default_rng(3)
    values = (rng.normal(0, 0.7**0.5, 6000) + rng.normal(0, 0.3**0.5, (3, 6000))).round(1).tolist()
    assert krippendorff(values, "interval") == pytest.approx(0.7, abs=0.02)
    assert krippendorff(values, "ordinal") == pytest.approx(6 / np.pi * np.arcsin(0.35), abs=0.02)


@pytest.mark.parametrize(
    "ratings", [[], [[], []], [[1, 2]], [[1, None], [None, 2]], [[1, 1], [2, None]], [[1, 1, 1], [1, 1, 1]]]
)
def test_nothing_is_defined_without_two_shared_units_and_two_values(ratings):
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff(ratings, level) is None
        assert gwet(ratings, level) is None
    assert fleiss(ratings) is None
    if len(ratings) == 2:
        assert cohen(*ratings) is None
    assert estimate("krippendorff", ratings).value is None


def test_ac1_is_defined_without_variation_if_the_scale_is_known():
    # by hand: all agree, chance is 0 where one of two values is never used
    same = [["yes"] * 5, ["yes"] * 5]
    assert (gwet(same), gwet(same, categories=["yes", "no"])) == (None, 1.0)
    with pytest.raises(BadInput, match="none of the categories"):
        gwet(same, categories=["no"])


def test_ratings_must_fit():
    with pytest.raises(BadInput, match="for each unit"):
        krippendorff([[1, 2], [1]])
    with pytest.raises(BadInput, match="finite numbers"):
        krippendorff([["a", "b"], ["a", "b"]], "ordinal")
    with pytest.raises(BadInput, match="finite numbers"):
        krippendorff([[1.0, float("nan")], [1.0, 2.0]], "interval")
    with pytest.raises(BadInput, match="of two raters"):
        estimate("cohen", [[1], [1], [1]])
    with pytest.raises(BadInput, match="as many clusters"):
        estimate("fleiss", [[1, 2], [1, 2]], ["game"])


def test_values_may_be_of_any_kind():
    words, answers = [list("abca"), list("abcb")], [[True, False, True, True], [True, False, False, True]]
    assert krippendorff(words) == krippendorff([[1, 2, 3, 1], [1, 2, 3, 2]])
    assert cohen(*answers) == pytest.approx(0.5)  # by hand: 3 of 4 agree, by chance (3 * 2 + 1 * 2) / 16


COEFFICIENTS = [
    *(("krippendorff", level) for level in ("nominal", "ordinal", "interval")),
    *(("gwet", level) for level in ("nominal", "ordinal", "interval")),
    *((name, "nominal") for name in ("cohen", "fleiss", "percent")),
]


def test_every_coefficient_is_resampled_here():
    assert {name for name, _ in COEFFICIENTS} == {*get_args(Coefficient)}


@pytest.mark.parametrize("coefficient, level", COEFFICIENTS)
def test_a_resample_is_the_coefficient_of_the_drawn_clusters(coefficient, level):
    """Sums of clusters with weights 2, 0, 1 and 3 are those of ratings that repeat their units so often."""
    draw, times = random.Random(6), [2, 0, 1, 3]
    ratings = [[1, 2, 5, 7, *row] for row in drawn(draw, 2, 36, [1, 2, 5, 7], missing=0.1)]
    ratings = ratings if coefficient == "cohen" else [*ratings, [1, 2, 5, 7, *drawn(draw, 1, 36, [1, 2, 5, 7])[0]]]
    clusters = [unit % 4 for unit in range(40)]
    sums = cluster_sums(coefficient, ratings, clusters, level)
    order = sorted(range(4), key=clusters.index)
    repeated = [[value for unit, value in enumerate(row) for _ in range(times[clusters[unit]])] for row in ratings]
    expected = estimate(coefficient, repeated, level=level, categories=[1, 2, 5, 7]).value
    assert float(sums.coefficient(np.array([times[cluster] for cluster in order]) @ sums.rows)) == pytest.approx(
        expected
    )


def test_the_interval_of_a_share_of_agreeing_pairs_is_students_t():
    """Of a mean of n units the bootstrap's error is sqrt((n - 1) / n) times the standard error of the mean."""
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 2, (2, 40)).tolist()
    result = estimate("percent", [first, second], resamples=20_000)
    expected = stats.ttest_1samp(np.equal(first, second), 0).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx(tuple(expected), abs=0.01)
    assert (result.units, result.clusters, result.raters) == (40, 40, 2)


def test_clusters_not_units_are_resampled():
    """Ten times the same unit in each of 30 clusters says no more than one: the interval is as wide."""
    rng = np.random.default_rng(4)
    once = rng.integers(0, 3, (2, 30))
    alone = estimate("krippendorff", once.tolist(), resamples=4000)
    often = estimate(
        "krippendorff", np.repeat(once, 10, axis=1).tolist(), np.repeat(range(30), 10).tolist(), resamples=4000
    )
    assert (often.units, often.clusters) == (300, 30)
    assert often.high - often.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_an_interval_is_the_same_with_the_same_seed():
    ratings = np.random.default_rng(1).integers(0, 3, (3, 50)).tolist()
    first, again, other = (estimate("gwet", ratings, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.value == other.value
    assert first.low != other.low


@pytest.mark.parametrize(
    "ratings", [[[1, 2], [1, 1]], [[1, 2, 3, 4], [1, 2, 3, 4]], [[1, 1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 2]]]
)
def test_there_is_no_interval_where_resamples_say_nothing(ratings):
    """Two clusters; full agreement in all of them; a third of the resamples without the one unit that differs."""
    result = estimate("krippendorff", ratings)
    assert result.value is not None
    assert (result.low, result.high) == (None, None)


@pytest.mark.parametrize("clusters", [6, 15])
def test_intervals_cover_alpha_with_few_clusters(clusters):
    """400 data sets of four units a cluster; trust 0.8 gives alpha 0.64. 95 % within three errors of the simulation.

    Both raters see the truth with probability 0.8 and toss a coin otherwise: they agree in a share (1 + 0.64) / 2.
    """
    rng = np.random.default_rng(clusters)
    groups = np.repeat(range(clusters), 4).tolist()
    covered = 0
    for _ in range(400):
        truth = rng.integers(0, 2, len(groups))
        sees = rng.random((3, len(groups))) < 0.8
        ratings = np.where(sees, truth, rng.integers(0, 2, sees.shape)).tolist()
        result = estimate("krippendorff", ratings, groups)
        covered += result.low is not None and result.low <= 0.64 <= result.high
    assert 0.915 <= covered / 400 <= 0.985


def masi_by_hand(a, b):
    """Passonneau (2006), section 3."""
    monotonicity = 1 if a == b else 2 / 3 if a < b or b < a else 1 / 3 if a & b else 0
    return 1 - monotonicity * (len(a & b) / len(a | b) if a | b else 1)


def test_sets_are_compared_by_masi():
    one, both, other = frozenset("a"), frozenset("ab"), frozenset("bc")
    assert [masi(one, both), masi(both, other), masi(one, other), masi(one, one)] == pytest.approx([2 / 3, 8 / 9, 1, 0])
    assert masi(frozenset(), frozenset()) == 0
    draw = random.Random(3)
    rows = [[frozenset(draw.sample("abcd", draw.randint(0, 3))) for _ in range(30)] for _ in range(3)]
    rows[0][4] = rows[2][7] = N
    data = [(rater, unit, value) for rater, row in enumerate(rows) for unit, value in enumerate(row) if value is not N]
    assert krippendorff(rows, "sets") == pytest.approx(AnnotationTask(data, distance=masi_by_hand).alpha(), abs=1e-12)
    with pytest.raises(BadInput, match="needs sets"):
        krippendorff([[1, 2], [1, 2]], "sets")
    with pytest.raises(BadInput, match="does not compare sets"):
        estimate("gwet", rows, level="sets")
