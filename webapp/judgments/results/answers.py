"""What the annotators of a queue answered, unit by unit, as agreement, truth and calibration read it.

A unit is a place of one label type: the game, a seat, a turn, words or a pair of turns of one target. Annotators are
the numbers of `webapp.judgments.naming`. A turn that an annotator of the game did not mark is
a no. Decisions of adjudicators are apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from training.evaluate.agreement import Level, Value
from training.labels.codebooks import Codebook, Kind, LabelType
from training.records import LabelValue
from webapp.judgments.games import GAME_ID, GameId
from webapp.judgments.models import Judgment, JudgmentQuerySet, Label, Queue, Target
from webapp.judgments.naming import numbers_in

FEW_STEPS = 7
"""Whole-numbered steps of a scale up to which its agreement is ordinal, and its values are categories."""
NOT_BY_UNIT: frozenset[Kind] = frozenset({"text", "span", "relation", "ranking"})
"""Kinds whose values are not compared unit by unit."""
Place = tuple[int | None, ...]
"""Seat, turn, start, end and other turn of a label."""
PLACE = ("seat", "turn", "start", "end", "other_turn")
Marks = Mapping[str, Mapping[Place, LabelValue]]
"""The labels of one judgment: values by label type and place."""
Unit = tuple[int, Place]
"""A target and a place in it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A target of the queue: the game that it belongs to, the seat (None: all), and the turns that can be labelled."""

    game: GameId
    seat: int | None
    batch: int
    turns: Sequence[int]


@dataclass(frozen=True)
class Answer:
    """One judgment: `marks` None if the author could not score it; `at` is when it was first saved."""

    marks: Marks | None
    at: datetime


@dataclass(frozen=True)
class Answers:
    """The answers of a queue by target and annotator, and the decisions by target."""

    codebook: Codebook
    annotators: Sequence[int]
    """The numbers of those who answered."""
    targets: Mapping[int, Judged]
    by_target: Mapping[int, Mapping[int, Answer]]
    decided: Mapping[int, Answer] = field(default_factory=dict)


@dataclass(frozen=True)
class Ratings:
    """The values of one label type: what each annotator said of a unit, and the game of each unit."""

    units: Sequence[Unit]
    clusters: Sequence[Hashable]
    values: Mapping[int, Mapping[Unit, Value]]

    def rows(self, annotators: Sequence[int]) -> list[list[Value | None]]:
        """Return a row per annotator with a value, or None, for each unit."""
        return [[self.values.get(number, {}).get(unit) for unit in self.units] for number in annotators]

    def among(self, targets: Iterable[int]) -> Ratings:
        """Return the units of these targets alone."""
        wanted = set(targets)
        kept = [at for at, unit in enumerate(self.units) if unit[0] in wanted]
        return Ratings([self.units[at] for at in kept], [self.clusters[at] for at in kept], self.values)

    def of_option(self, option: str) -> Ratings:
        """Return whether each annotator chose the option, in place of the sets."""
        values = {
            number: {unit: isinstance(value, frozenset) and option in value for unit, value in by_unit.items()}
            for number, by_unit in self.values.items()
        }
        return Ratings(self.units, self.clusters, values)

    def shared(self, first: int, second: int) -> Ratings:
        """Return the units that both annotators rated."""
        a, b = self.values.get(first, {}), self.values.get(second, {})
        kept = [at for at, unit in enumerate(self.units) if unit in a and unit in b]
        return Ratings([self.units[at] for at in kept], [self.clusters[at] for at in kept], self.values)


def of_queue(queue: Queue) -> Answers:
    """Return what people answered in a queue."""
    return of_judgments(queue, Judgment.objects.filter(queue=queue, author__isnull=False))


def of_judgments(queue: Queue, judgments: JudgmentQuerySet) -> Answers:
    """Return these judgments of the queue's targets; each has an account as its author."""
    columns = ("pk", "target", "author", "decides", "unscored", "created_at")
    rows = list(judgments.order_by("pk").values_list(*columns))
    marks = marks_of(judgments)
    numbers = numbers_in(queue.pk)
    by_target: dict[int, dict[int, Answer]] = defaultdict(dict)
    decided = {}
    for pk, target, author, decides, unscored, at in rows:
        answer = Answer(None if unscored else marks.get(pk, {}), at)
        if decides:
            decided[target] = answer
        else:
            by_target[target][numbers[author]] = answer
    annotators = sorted({number for answers in by_target.values() for number in answers})
    return Answers(queue.codebook_version.record(), annotators, targets_of(queue), by_target, decided)


def targets_of(queue: Queue) -> dict[int, Judged]:
    """Return the targets of a queue, in its order."""
    rows = Target.objects.filter(queue=queue).order_by("position").values_list("pk", *GAME_ID, "seat", "batch", "turns")
    return {pk: Judged(tuple(game), seat, batch, turns or ()) for pk, *game, seat, batch, turns in rows}


def marks_of(judgments: JudgmentQuerySet) -> dict[int, dict[str, dict[Place, LabelValue]]]:
    """Return the labels of scored judgments by their id."""
    marks: dict[int, dict[str, dict[Place, LabelValue]]] = defaultdict(lambda: defaultdict(dict))
    labels = Label.objects.filter(judgment__in=judgments.order_by().values("pk"), judgment__unscored=False)
    for pk, name, value, text, *place in labels.values_list("judgment", "name", "value", "text", *PLACE).iterator():
        marks[pk][name][tuple(place)] = typed(value, text)
    return marks


def typed(value: Any, text: str) -> LabelValue:
    """Return the value of a label as its record has it."""
    return tuple(value) if isinstance(value, list) else text or value


def level_of(label_type: LabelType) -> Level:
    """Return how values of this type are compared: sets by what they share; scales by distance, or by order where
    they have at most seven whole-numbered steps; all others by whether they are equal.
    """
    if label_type.kind == "many_of":
        return "sets"
    if label_type.kind != "scale":
        return "nominal"
    return "ordinal" if steps(label_type) else "interval"


def steps(label_type: LabelType) -> list[Value]:
    """Return the categories of a type that has few: its options, no and yes, or the steps of a short scale."""
    if label_type.kind == "one_of":
        return [option.name for option in label_type.options]
    if label_type.yes_no:
        return [False, True]
    if label_type.kind != "scale":
        return []
    low, high = label_type.bounds
    whole = low.is_integer() and high.is_integer() and high - low < FEW_STEPS
    return [float(step) for step in range(int(low), int(high) + 1)] if whole else []


def ratings(answers: Answers, label_type: LabelType) -> Ratings:
    """Return the values of a label type with values: all but texts, rankings, spans and relations."""
    values: dict[int, dict[Unit, Value]] = defaultdict(dict)
    units: dict[Unit, None] = {}
    for target, number, marks in scored(answers):
        for place, value in values_at(label_type, answers.targets[target], marks):
            values[number][target, place] = value
            units[target, place] = None
    if label_type.kind == "many_of" and not label_type.required and label_type.when is None:
        _fill(answers, units, values)
    return Ratings(list(units), [answers.targets[target].game for target, _ in units], values)


def _fill(answers: Answers, units: Iterable[Unit], values: Mapping[int, dict[Unit, Value]]) -> None:
    """Give the empty set to annotators who chose no option at a place where another chose one."""
    for unit in units:
        for number, answer in answers.by_target[unit[0]].items():
            if answer.marks is not None:
                values[number].setdefault(unit, frozenset())


def scored(answers: Answers) -> Iterator[tuple[int, int, Marks]]:
    """Yield target, annotator and labels of every judgment that could be scored."""
    for target, by_annotator in answers.by_target.items():
        for number, answer in by_annotator.items():
            if answer.marks is not None:
                yield target, number, answer.marks


def values_at(label_type: LabelType, target: Judged, marks: Marks) -> Iterator[tuple[Place, Value]]:
    """Yield the values of a label type in one judgment, as coefficients compare them, each with its place."""
    stated = marks.get(label_type.name, {})
    if label_type.about == "turn" and label_type.yes_no:
        for turn in target.turns:
            marked: Place = (None, turn, None, None, None)
            yield marked, stated.get(marked) is True
        return
    for place, value in stated.items():
        if isinstance(value, tuple):
            yield place, frozenset(map(str, value))
        elif value is not None:
            yield place, float(value) if label_type.kind == "scale" else value
