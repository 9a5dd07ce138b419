"""Truth inference: the aggregated label of each unit from several annotators' labels, and each annotator's reliability.

Majority voting, and two models that weight annotators by their estimated errors: Dawid and Skene (Maximum likelihood
estimation of observer error-rates using the EM algorithm, 1979), and MACE (Hovy et al., Learning whom to trust with
MACE, 2013). An annotator may label a unit several times. Nothing is random. Raises `BadInput` for no label.

A new method is a function here, its entry in `METHODS`, and a test with numbers worked by hand.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from training.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.records import Floats

    Ints: TypeAlias = NDArray[np.int64]

MOST_ROUNDS = 1000
"""Of expectation and maximisation."""
CONVERGED = 1e-9
"""The largest change of a probability in a round after which the models are fitted."""
EQUAL = 1e-6
"""Probabilities that differ by less are a tie."""
LEAST = 1e-300
"""The smallest probability of which a logarithm is taken."""
KNOWS, STATES = 0.5, 10.0
"""MACE's priors: Beta of whether an annotator knows, Dirichlet of what it guesses."""


class Label(NamedTuple):
    """What an annotator says of a unit; `value` is a category, compared for equality."""

    unit: Hashable
    annotator: Hashable
    value: Hashable


@dataclass(frozen=True, slots=True)
class UnitTruth:
    """The likeliest values of a unit, one or several that are equally likely, and the probability of each.

    For majority voting the probability is the share of the unit's labels.
    """

    values: tuple[Hashable, ...]
    probability: float

    @property
    def tied(self) -> bool:
        """Whether several values are equally likely."""
        return len(self.values) > 1

    @property
    def value(self) -> Hashable | None:
        """The likeliest value; None if there is a tie."""
        return None if self.tied else self.values[0]


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth of every unit, and every annotator's reliability from 0 to 1, None where nothing tells.

    What the reliability is depends on the method.
    """

    units: Mapping[Hashable, UnitTruth]
    reliability: Mapping[Hashable, float | None]


def majority(labels: Iterable[Label]) -> Truth:
    """Return the most frequent values of each unit.

    An annotator's reliability is the share of its labels that are the majority's, of units without a tie. It is too
    high where few annotators label a unit, since an annotator is part of the majority that it is compared with.
    """
    counts: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    entries = _checked(labels)
    for label in entries:
        counts[label.unit][label.value] += 1
    units = {
        unit: UnitTruth(
            tuple(value for value, times in votes.items() if times == max(votes.values())),
            max(votes.values()) / votes.total(),
        )
        for unit, votes in counts.items()
    }
    agreed: dict[Hashable, list[bool]] = {label.annotator: [] for label in entries}
    for label in entries:
        if not units[label.unit].tied:
            agreed[label.annotator].append(label.value == units[label.unit].value)
    return Truth(units, {who: sum(each) / len(each) if each else None for who, each in agreed.items()})


def dawid_skene(labels: Iterable[Label]) -> Truth:
    """Return the truth by Dawid and Skene's model: every annotator has its own probability of each error.

    EM starts at the shares of each unit's labels. An annotator's reliability is its probability of stating the true
    value: that of each value by its estimated frequency. An annotator needs several labels per value.
    """
    coded = _coded(_checked(labels))
    size = len(coded.values)
    cells = coded.annotator * size + coded.value

    def maximised(truth: Floats) -> tuple[Floats, Floats]:
        """Return the frequencies of values, and the errors: annotators x true values x stated values."""
        stated = _sums(cells, truth[coded.unit], len(coded.annotators) * size)
        errors = stated.reshape(-1, size, size).swapaxes(1, 2)
        return truth.mean(axis=0), errors / np.maximum(errors.sum(axis=2, keepdims=True), LEAST)

    def improved(truth: Floats) -> Floats:
        frequencies, errors = (np.log(np.maximum(each, LEAST)) for each in maximised(truth))
        return _normalised(frequencies + _sums(coded.unit, errors[coded.annotator, :, coded.value], len(coded.units)))

    truth = _fitted(improved, _shares(coded))
    frequencies, errors = maximised(truth)
    right = (frequencies * errors.diagonal(axis1=1, axis2=2)).sum(axis=1)
    return Truth(_units(coded, truth), dict(zip(coded.annotators, map(float, right), strict=True)))


def mace(labels: Iterable[Label]) -> Truth:
    """Return the truth by MACE: an annotator either knows the value, or states one from a distribution of its own.

    It is fitted by variational Bayes with the priors of the paper, from the start at which everybody is alike, in place
    of random restarts. An annotator's reliability is its expected probability of knowing, which for k values and evenly
    spread errors is (accuracy - 1 / k) / (1 - 1 / k).
    """
    coded = _coded(_checked(labels))
    size, count = len(coded.values), len(coded.annotators)
    cells = coded.annotator * size + coded.value
    one_hot = np.eye(size)[coded.value]  # labels x values: whether the label is this value
    weights = np.full(len(cells), 0.5), np.full(len(cells), 0.5 / size)  # of each label: known, or guessed

    def counted(truth: Floats) -> tuple[Floats, Floats]:
        """Return how many labels of an annotator are expected to be known, and to be guesses of each value."""
        known = (truth[coded.unit] * one_hot).sum(axis=1, keepdims=True) * (weights[0] / sum(weights))[:, None]
        return _sums(coded.annotator, known, count)[:, 0], _sums(cells, 1 - known, count * size).reshape(count, size)

    def improved(truth: Floats) -> Floats:
        nonlocal weights
        weights = _variational(*counted(truth), coded)
        likelihoods = np.log(np.maximum(weights[0][:, None] * one_hot + weights[1][:, None], LEAST))
        return _normalised(_sums(coded.unit, likelihoods, len(coded.units)))

    truth = _fitted(improved, _shares(coded))
    known, guessed = counted(truth)
    reliability = (known + KNOWS) / (known + guessed.sum(axis=1) + 2 * KNOWS)
    return Truth(_units(coded, truth), dict(zip(coded.annotators, map(float, reliability), strict=True)))


class Method(NamedTuple):
    """A method of truth inference, with its title on pages."""

    title: str
    infer: Callable[[Iterable[Label]], Truth]


METHODS: dict[str, Method] = {
    "majority": Method("Majority", majority),
    "dawid_skene": Method("Dawid–Skene", dawid_skene),
    "mace": Method("MACE", mace),
}
"""The methods by name, in the order of pages."""


class _Coded(NamedTuple):
    """Labels as numbers: of each the places of its unit, annotator and value, and what these are."""

    unit: Ints
    annotator: Ints
    value: Ints
    units: Sequence[Hashable]
    annotators: Sequence[Hashable]
    values: Sequence[Hashable]


def _checked(labels: Iterable[Label]) -> list[Label]:
    entries = list(labels)
    if not entries:
        raise BadInput("there are no labels", "labels")
    return entries


def _coded(labels: Sequence[Label]) -> _Coded:
    places: tuple[dict[Hashable, int], ...] = ({}, {}, {})
    rows = [[place.setdefault(name, len(place)) for place, name in zip(places, label, strict=True)] for label in labels]
    unit, annotator, value = np.array(rows, dtype=np.int64).T
    units, annotators, values = map(list, places)
    return _Coded(unit, annotator, value, units, annotators, values)


def _sums(places: Ints, rows: Floats, count: int) -> Floats:
    """Return the sums of the rows at each of `count` places."""
    return np.stack([np.bincount(places, column, count) for column in rows.T], axis=1)


def _shares(coded: _Coded) -> Floats:
    votes = _sums(coded.unit, np.eye(len(coded.values))[coded.value], len(coded.units))
    result: Floats = votes / votes.sum(axis=1, keepdims=True)
    return result


def _normalised(logarithms: Floats) -> Floats:
    """Return rows of probabilities by their logarithms up to a constant."""
    weights = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    result: Floats = weights / weights.sum(axis=1, keepdims=True)
    return result


def _fitted(improved: Callable[[Floats], Floats], truth: Floats) -> Floats:
    """Return the probabilities of values (units x values) that a round no longer changes."""
    for _ in range(MOST_ROUNDS):
        before, truth = truth, improved(truth)
        if np.abs(truth - before).max() < CONVERGED:
            break
    return truth


def _variational(known: Floats, guessed: Floats, coded: _Coded) -> tuple[Floats, Floats]:
    """Return for each label the weights of knowing and of guessing its value: exponentials of expected logarithms."""
    from scipy.special import digamma  # slow to import, for every process of the site

    total = guessed.sum(axis=1)
    both = digamma(known + total + 2 * KNOWS)
    knows, guesses = (np.exp(digamma(each + KNOWS) - both) for each in (known, total))
    stated = np.exp(digamma(guessed + STATES) - digamma(total + STATES * guessed.shape[1])[:, None])
    return knows[coded.annotator], guesses[coded.annotator] * stated[coded.annotator, coded.value]


def _units(coded: _Coded, probabilities: Floats) -> dict[Hashable, UnitTruth]:
    truths = {}
    for unit, row in zip(coded.units, probabilities.tolist(), strict=True):
        best = max(row)
        likeliest = tuple(
            value for value, probability in zip(coded.values, row, strict=True) if best - probability < EQUAL
        )
        truths[unit] = UnitTruth(likeliest, best)
    return truths
