"""The measurement of agreement and aggregated truth, with few items."""

import json

import pytest

from bench import agreement, agreement_page
from bench.__main__ import main
from training.labels.truth import Label, majority


def test_the_known_alpha_by_hand():
    # two annotators, errors of 0.1 and 0.2, two values: they agree in 0.9 * 0.8 + 0.1 * 0.2 = 0.74
    assert agreement._alpha((0.1, 0.2), (0.5, 0.5)) == pytest.approx(1 - 0.26 / 0.5)
    # of a value with frequency 0.8, on average 0.15 are stated as the other: 0.8 * 0.85 + 0.2 * 0.15 = 0.71
    assert agreement._alpha((0.1, 0.2), (0.8, 0.2)) == pytest.approx(1 - 0.26 / (1 - 0.71**2 - 0.29**2))


def test_a_tie_counts_as_a_guess_between_its_values():
    votes = majority([Label(0, "a", 1), Label(0, "b", 2), Label(1, "a", 1), Label(2, "a", 1)])
    assert agreement._accuracy(votes, [2, 1, 3]) == pytest.approx((0.5 + 1 + 0) / 3)


def test_it_measures_and_prints(capsys):
    assert main(["agreement", "--items", "400", "--seeds", "2", "--samples", "5", "--json"]) == 0
    raw = json.loads(capsys.readouterr().out)
    assert {name: len(values) for name, values in raw["alpha"]["estimated"].items()} == dict.fromkeys(
        ("even, all", "even, three", "skewed, all", "skewed, three"), 2
    )
    lines = list(agreement_page.page(raw))
    assert sum("MACE" in line for line in lines) == 2
    assert lines[-1].startswith("| all nine (target: at most 2 s;")
    raw["alpha"]["largest_deviation"] = 0.021
    assert any("0.0210 (target: at most 0.02; **no**)" in line for line in agreement_page.page(raw))
