"""The similarity of two judgments of one target, over all kinds of labels.

A judgment is a sequence of label records, or None where the author could not score the target. Texts do not count.

Queues read this inside the write that stores a judgment, from its labels alone: what nobody marked is not compared.
`results.disagreement` reads a whole queue with the turns that were asked about, and counts an unmarked turn as a no.
Both have the same distance of two values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from statistics import mean

from training.evaluate.agreement import masi
from training.labels.codebooks import Codebook, LabelType
from training.records import Label, LabelValue

Labels = Sequence[Label] | None
MARKS_ALIKE = 0.8
"""The similarity from which labels of turns, spans and relations count as correct."""


def similarity(first: Labels, second: Labels, codebook: Codebook) -> float:
    """Return the mean similarity over the label types that either judgment uses, from 0 to 1; 1 where neither has any.

    For values about seats or the game, the similarity of a type is 1 minus their `distance`, as a mean over seats. For
    labels of turns, spans and relations it is the Jaccard index, for spans by characters. Two authors who could
    not score the target agree.
    """
    if first is None or second is None:
        return float(first is None and second is None)
    return _mean(
        _alike_in(label_type, first, second)
        for label_type in codebook.labels
        if label_type.kind != "text" and any(label.label == label_type.name for label in (*first, *second))
    )


def disagreement(judgments: Sequence[Labels], codebook: Codebook) -> float:
    """Return 1 minus the mean similarity over all pairs of judgments; 0 for fewer than two."""
    pairs = combinations(judgments, 2)
    return 1 - _mean(similarity(first, second, codebook) for first, second in pairs)


def is_right(answer: Labels, decision: Labels, codebook: Codebook) -> bool:
    """Return whether an answer agrees with a decision.

    All required values about seats and the game are equal, but for texts, and of the labels of turns, words and pairs
    the mean similarity is at least `MARKS_ALIKE`. What is not required counts only where it marks turns.
    """
    if answer is None or decision is None:
        return answer is None and decision is None
    asked = [each for each in codebook.labels if each.about in ("seat", "game") and each.kind != "text"]
    required = {each.name for each in asked if each.required}
    if _values(answer, required) != _values(decision, required):
        return False
    marks = [each for each in codebook.labels if each.about not in ("seat", "game")]
    if not marks:
        return True
    marking = codebook.model_copy(update={"labels": tuple(marks)})
    names = {each.name for each in marks}
    chosen = [[label for label in labels if label.label in names] for labels in (answer, decision)]
    return similarity(chosen[0], chosen[1], marking) >= MARKS_ALIKE


def _mean(shares: Iterable[float]) -> float:
    """The mean, or 1 where there is nothing to compare."""
    listed = list(shares)
    return mean(listed) if listed else 1.0


def _values(labels: Sequence[Label], names: set[str]) -> dict[Hashable, object]:
    return {(label.label, label.seat): _comparable(label.value) for label in labels if label.label in names}


def _comparable(value: LabelValue) -> Hashable:
    """A value without what says nothing: the order of chosen options."""
    if isinstance(value, tuple) and all(isinstance(each, str) for each in value):
        return frozenset(value)
    return value


def _alike_in(label_type: LabelType, first: Sequence[Label], second: Sequence[Label]) -> float:
    if label_type.about not in ("seat", "game"):
        marks = [_marks(label_type.name, labels) for labels in (first, second)]
        return len(marks[0] & marks[1]) / len(marks[0] | marks[1])
    values = [_values(labels, {label_type.name}) for labels in (first, second)]
    return _mean(1 - distance(label_type, *(each.get(place) for each in values)) for place in values[0] | values[1])


def distance(label_type: LabelType, first: object, second: object) -> float:
    """Return how far two values of a label type are apart, from 0 to 1; None is no value.

    On a scale it is their difference as a share of the scale, between sets of options MASI; others are equal or not.
    """
    if isinstance(first, frozenset) and isinstance(second, frozenset):
        return masi(first, second)
    if label_type.kind == "scale" and isinstance(first, int | float) and isinstance(second, int | float):
        low, high = label_type.bounds
        return abs(first - second) / (high - low)
    return float(first != second)


def _marks(name: str, labels: Iterable[Label]) -> set[Hashable]:
    """The marks of a type: turns and pairs with their values, words as single characters."""
    marks: set[Hashable] = set()
    for label in labels:
        if label.label != name:
            continue
        if label.start is None or label.end is None:
            marks.add((label.turn, label.other_turn, _comparable(label.value)))
        else:
            marks |= {(label.turn, place, _comparable(label.value)) for place in range(label.start, label.end)}
    return marks
