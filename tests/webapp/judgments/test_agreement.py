"""Krippendorff's alpha, against its definition and a worked example."""

import random
from itertools import permutations

import pytest

from webapp.judgments.agreement import alpha, overall


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


def test_the_example_of_four_observers_and_twelve_units():
    # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: 0.849 for interval data.
    units = [[1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4], [4, 4, 4, 4],
             [1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1], [3]]  # fmt: skip
    assert alpha(units) == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize("units", [[], [[3]], [[3, 4]], [[3], [4], [5, 6]], [[3, 3], [3, 3]]])
def test_it_is_not_defined_without_two_shared_units_and_two_values(units):
    assert alpha(units) is None


def test_raters_of_a_known_reliability():
    """Values = a seat's own part + a rater's noise: alpha estimates the share of the variance that is the seat's."""
    draw = random.Random(7)
    seats = [draw.gauss(0, 2) for _ in range(4000)]
    units = [[seat + draw.gauss(0, 1) for _ in range(3)] for seat in seats]
    assert alpha(units) == pytest.approx(4 / 5, abs=0.02)


def test_the_mean_leaves_out_what_is_not_defined():
    from webapp.judgments.agreement import Agreement

    assert overall([Agreement("a", 0.5, 3), Agreement("b", None, 3), Agreement("c", 1.0, 3)]) == 0.75
    assert overall([]) is None
