"""Intervals of reliability: they cover what annotators of known errors are, whatever the number of games."""

import random

import pytest

from training.evaluate.reliability import reliability_intervals
from training.labels.truth import Label, dawid_skene, majority

ACCURACIES = (0.95, 0.8, 0.65)


def labelled(games, seed):
    """Two yes-or-no units a game, labelled by annotators of known accuracies."""
    draw = random.Random(seed)
    labels = []
    for unit in range(2 * games):
        truth = draw.random() < 0.5
        labels += [Label(unit, who, truth == (draw.random() < right)) for who, right in enumerate(ACCURACIES)]
    return labels, {unit: unit // 2 for unit in range(2 * games)}


def test_the_interval_covers_the_probability_of_a_right_label():
    """15 data sets of 60 games: 95 % of 45 intervals, within three standard errors of the simulation."""
    covered = 0
    for seed in range(15):
        intervals = reliability_intervals(dawid_skene, *labelled(60, seed), resamples=20)
        covered += sum(low <= right <= high for right, (low, high) in zip(ACCURACIES, intervals.values(), strict=True))
    assert covered / 45 >= 0.85


def test_many_games_are_drawn_in_part_and_give_the_same_width():
    labels, clusters = labelled(400, 1)
    whole = reliability_intervals(majority, labels, clusters, resamples=100, most=400)
    part = reliability_intervals(majority, labels, clusters, resamples=100, most=100)
    for who in range(3):
        assert part[who][1] - part[who][0] == pytest.approx(whole[who][1] - whole[who][0], rel=0.3)


def test_there_is_none_for_two_games_or_for_who_is_always_alike():
    labels, clusters = labelled(2, 1)
    assert set(reliability_intervals(majority, labels, clusters).values()) == {None}
    same = [Label(unit, who, True) for unit in range(9) for who in "ab"]
    assert reliability_intervals(majority, same, {unit: unit for unit in range(9)}) == {"a": None, "b": None}
