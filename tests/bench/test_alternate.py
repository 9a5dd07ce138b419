"""Alternating runs: the order, uncounted runs, and medians by hand."""

import pytest

from bench.alternate import Reading, alternate


def test_sides_take_turns_and_medians_are_compared():
    calls = []

    def side(name, rates):
        left = iter(rates)

        def run():
            calls.append(name)
            rate = next(left)
            return Reading(rate, {"all": 1 / rate})

        return run

    comparison = alternate(side("a", [999, 10, 40, 20]), side("b", [1, 5, 10, 20]), 3)
    assert calls == ["a", "b"] * 4
    assert (comparison["a"]["median"], comparison["b"]["median"]) == (20, 10)
    assert comparison["a"]["spread"] == [10, 40]
    assert comparison["ratio"] == 2
    assert comparison["ratios"] == [2, 4, 1]
    assert comparison["a"]["seconds"] == {"all": pytest.approx(1 / 20)}


def test_no_round_is_no_measurement():
    with pytest.raises(ValueError, match="round"):
        alternate(lambda: Reading(1), lambda: Reading(1), 0)
