"""Importances of a sweep's fields, and the places of its trials in parallel coordinates."""

import math

import pytest

from webapp.runs.sweeps import charts


def test_importances_are_those_worked_out_by_hand() -> None:
    trials = [
        ({"lr": 1, "method": "a", "same": 5}, 1.0),
        ({"lr": 2, "method": "a", "same": 5}, 3.0),
        ({"lr": 3, "method": "b", "same": 5}, 2.0),
        ({"lr": 4, "method": "b", "same": 5}, 10.0),
    ]
    # Ranks of the results are 1, 3, 2, 4 beside 1, 2, 3, 4: ρ = 1 - 6 · (0 + 1 + 1 + 0) / (4 · 15) = 0.8.
    # The mean is 4, those of a and b are 2 and 6: between 2 · 4 + 2 · 4 = 16; in all 9 + 1 + 4 + 36 = 50.
    first, second = charts.importances(trials, ["lr", "method", "same"])
    assert (first.path, first.direction, first.value) == ("lr", "rises", pytest.approx(0.8))
    assert (second.path, second.direction, second.value) == ("method", "", pytest.approx(math.sqrt(16 / 50)))
    assert charts.importances(trials[:2], ["lr"]) == []
    assert [each.value for each in charts.importances([(values, 1.0) for values, _ in trials], ["lr"])] == [0.0]


def test_trials_are_lines_over_the_fields_and_the_metric() -> None:
    trials = [
        ({"lr": 1e-4, "method": "b"}, 2.0),
        ({"lr": 1e-5, "method": "a"}, 1.0),
        ({"lr": 1e-6, "method": "b"}, 0.0),
    ]
    fields = [("lr", "1e-6..1e-4 log"), ("method", "a, b")]
    made = charts.coordinates(trials, fields, "Reward")
    assert made is not None
    assert [(axis.x, axis.title, axis.ticks) for axis in made.axes] == [
        (0, "lr", [(200.0, "1e-06"), (100.0, "1e-05"), (0.0, "0.0001")]),
        (300, "method", [(200.0, "a"), (0.0, "b")]),
        (600, "Reward", [(200.0, "0"), (100.0, "1"), (0.0, "2")]),
    ]
    assert [(line.points, line.result, line.level, line.best) for line in made.lines] == [
        ("0.0,200.0 300.0,0.0 600.0,200.0", "0", 1, False),
        ("0.0,100.0 300.0,200.0 600.0,100.0", "1", 2, False),
        ("0.0,0.0 300.0,0.0 600.0,0.0", "2", 3, True),
    ]
    assert charts.coordinates(trials[:2], [("lr", "1, 2")], "Reward") is None


def test_an_axis_with_many_values_has_the_texts_of_its_ends_alone() -> None:
    made = charts.coordinates([({"lr": n}, float(n)) for n in range(30, 0, -1)], [("lr", "1..30")], "Reward")
    assert made is not None
    assert made.axes[0].ticks == [(200.0, "1"), (0.0, "30")]
    assert [line.level for line in made.lines] == sorted(line.level for line in made.lines)
