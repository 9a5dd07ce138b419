"""Aggregated truth, against the example of Dawid and Skene, a second implementation and annotators that are known."""

import numpy as np
import pytest

from training.errors import BadInput
from training.labels.truth import METHODS, Label, dawid_skene, mace, majority

# Dawid and Skene (1979), table 1: the fitness of 45 patients for anaesthesia, from 1 to 4, by five observers, of whom
# the first saw every patient's form three times.
PATIENTS = """111 1 1 1 1|333 4 3 3 4|112 2 1 2 2|222 3 1 2 1|222 3 2 2 2
222 3 3 2 2|122 2 1 1 1|333 3 4 3 3|222 2 2 2 3|232 2 2 2 3
444 4 4 4 4|222 3 3 4 3|111 1 1 1 1|222 3 2 1 2|121 1 1 1 1
111 2 1 1 1|111 1 1 1 1|111 1 1 1 1|222 2 2 2 1|222 1 3 2 2
222 2 2 2 2|222 2 2 2 1|222 3 2 2 2|221 2 2 2 2|111 1 1 1 1
111 1 1 1 1|232 2 2 2 2|111 1 1 1 1|111 1 1 1 1|112 1 1 2 1
111 1 1 1 1|333 3 2 3 3|111 1 1 1 1|222 2 2 2 2|222 3 2 3 2
433 4 3 4 3|221 2 2 3 2|232 3 2 3 3|333 3 4 3 2|111 1 1 1 1
111 1 1 1 1|121 2 1 1 1|232 2 2 2 2|121 1 1 1 1|222 2 2 2 2""".replace("\n", "|").split("|")
OBSERVED = [
    Label(patient, observer, int(value))
    for patient, row in enumerate(PATIENTS, 1)
    for observer, values in enumerate(row.split(), 1)
    for value in values
]


def em(labels, values, rounds=500):
    """Equations 2.3 to 2.5 of Dawid and Skene on counts (units x annotators x values): the probabilities of values."""
    units, annotators = (sorted({label[at] for label in labels}) for at in (0, 1))
    counts = np.zeros((len(units), len(annotators), len(values)))
    for unit, annotator, value in labels:
        counts[units.index(unit), annotators.index(annotator), values.index(value)] += 1
    truth = counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None]
    for _ in range(rounds):
        errors = np.einsum("uj,ual->ajl", truth, counts)
        errors /= errors.sum(axis=2, keepdims=True)
        likelihood = truth.mean(axis=0) * np.prod(errors[None] ** counts[:, :, None, :], axis=(1, 3))
        truth = likelihood / likelihood.sum(axis=1, keepdims=True)
    return truth, errors


def test_the_example_of_dawid_and_skene():
    """Of all patients 0.40, 0.42, 0.11 and 0.07 are of the classes 1 to 4, which observer 1 states in 0.89, 0.88, 0.66
    and 0.44 of them (table 2).
    """
    truth = dawid_skene(OBSERVED)
    right = 0.40 * 0.89 + 0.42 * 0.88 + 0.11 * 0.66 + 0.07 * 0.44
    assert truth.reliability[1] == pytest.approx(right, abs=0.01)
    classes = [truth.units[patient].value for patient in range(1, 46)]
    assert [classes.count(value) / 45 for value in (1, 2, 3, 4)] == pytest.approx([0.40, 0.42, 0.11, 0.07], abs=0.01)


def test_dawid_and_skene_is_the_end_of_their_equations():
    truth, (probabilities, errors) = dawid_skene(OBSERVED), em(OBSERVED, (1, 2, 3, 4))
    for patient, row in enumerate(probabilities, 1):
        assert truth.units[patient].value == 1 + row.argmax()
        assert truth.units[patient].probability == pytest.approx(row.max(), abs=1e-6)
    for observer, each in enumerate(errors, 1):
        right = (probabilities.mean(axis=0) * each.diagonal()).sum()
        assert truth.reliability[observer] == pytest.approx(right, abs=1e-6)


def test_mace_is_that_of_a_second_implementation():
    """crowd-kit 1.4.2, MACE with n_restarts=1 and n_iter=60. Its reliability is the exponential of an expected
    logarithm, ours an expectation: they differ by less than 0.02 here.
    """
    truth = mace(OBSERVED)
    probabilities = [truth.units[patient].probability for patient in (3, 4, 7, 12, 36, 38)]
    assert probabilities == pytest.approx([0.8648, 0.9975, 0.9743, 0.7367, 0.9490, 0.9348], abs=2e-3)
    assert [truth.units[patient].value for patient in (3, 4, 7, 12, 36, 38)] == [2, 2, 1, 2, 3, 3]
    assert list(truth.reliability.values()) == pytest.approx([0.8247, 0.6171, 0.7369, 0.8103, 0.7524], abs=0.02)


RATES = {"zoe": 0.05, "yan": 0.25, "abe": 0.45, "bob": 0.15, "art": 0.35}
"""Names that are not in the order in which they appear, and values neither."""


def synthetic(seed=0, items=3000, values="dcba"):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(values), items)
    stated = {
        who: np.where(rng.random(items) < rate, (truth + rng.integers(1, 4, items)) % 4, truth)
        for who, rate in RATES.items()
    }
    labels = [Label(item, who, values[value]) for who, row in stated.items() for item, value in enumerate(row)]
    return [values[value] for value in truth], labels


def accuracy(result, truth):
    return np.mean([result.units[item].value == value for item, value in enumerate(truth)])


def test_reliability_is_that_of_annotators_who_are_known():
    """Errors are spread evenly over the other three of four values, and accuracy is 1 - e. By MACE's model an annotator
    knows a value in a share k of items, and states any of four else: 1 - e = k + (1 - k) / 4.
    """
    truth, labels = synthetic()
    fitted, known = dawid_skene(labels), mace(labels)
    for who, rate in RATES.items():
        assert fitted.reliability[who] == pytest.approx(1 - rate, abs=0.05)
        assert known.reliability[who] == pytest.approx((1 - rate - 1 / 4) / (3 / 4), abs=0.05)
    voted = accuracy(majority(labels), truth)
    assert accuracy(fitted, truth) > voted
    assert accuracy(known, truth) > voted


def test_names_and_order_change_nothing():
    _, labels = synthetic(items=80)
    renamed = [Label(f"unit {unit}", f"{who[::-1]}", f"{value}!") for unit, who, value in reversed(labels)]
    for method in (majority, dawid_skene, mace):
        first, second = method(labels), method(renamed)
        for who in RATES:
            assert second.reliability[who[::-1]] == pytest.approx(first.reliability[who], abs=1e-3)
        same = [first.units[unit].value for unit in range(80)]
        assert [second.units[f"unit {unit}"].value for unit in range(80)] == [value and f"{value}!" for value in same]


def test_majority_by_hand():
    labels = [
        *(Label("u", who, value) for who, value in (("a", 1), ("b", 1), ("c", 2))),
        *(Label("v", who, value) for who, value in (("a", 1), ("c", 2))),
        *(Label("w", who, value) for who, value in (("a", 3), ("b", 4), ("c", 4))),
        Label("v2", "d", 1),
        Label("v2", "e", 2),
    ]
    result = majority(labels)
    assert (result.units["u"].value, result.units["u"].probability) == (1, pytest.approx(2 / 3))
    tie = result.units["v"]
    assert (tie.tied, tie.value, tie.values, tie.probability) == (True, None, (1, 2), 0.5)
    assert result.units["w"].value == 4
    assert result.reliability == {"a": 0.5, "b": 1.0, "c": 0.5, "d": None, "e": None}


def test_two_annotators_who_differ_everywhere_are_tied_in_every_method():
    labels = [Label(item, who, value) for item in range(4) for who, value in (("a", "x"), ("b", "y"))]
    assert all(unit.tied for unit in majority(labels).units.values())
    fitted = dawid_skene(labels).units.values()
    assert all(unit.tied and set(unit.values) == {"x", "y"} for unit in fitted)


def test_the_same_labels_give_the_same_truth():
    _, labels = synthetic(items=50)
    assert mace(labels) == mace(labels)


@pytest.mark.parametrize("method", [each.infer for each in METHODS.values()], ids=METHODS)
def test_a_single_value_is_the_truth_and_no_label_is_refused(method):
    result = method([Label("u", "a", "x"), Label("u", "b", "x")])
    assert (result.units["u"].value, result.units["u"].probability) == ("x", pytest.approx(1))
    with pytest.raises(BadInput, match="no labels"):
        method([])
