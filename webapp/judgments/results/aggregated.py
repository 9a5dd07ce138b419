"""The truth that a queue's judgments suggest: decisions, and every method of `training.labels.truth`.

Values that are categories have a truth by each method: yes or no, one of several, every option of any of several, and
scales of up to seven whole-numbered steps. Of other scales the truth is the mean of the annotators' values, and an
annotator has a bias against the mean of the others. Words, relations, rankings and texts have no aggregated truth: an
adjudicator decides on them. Where an adjudicator decided, the decision is the truth, whatever the methods say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping
from statistics import fmean

from training.evaluate.agreement import Value
from training.evaluate.intervals import interval
from training.evaluate.reliability import reliability_intervals
from training.labels.codebooks import LabelType
from training.labels.truth import METHODS, Label, Truth
from training.reading import Record
from webapp.judgments.models import Queue
from webapp.judgments.results import answers as reading
from webapp.judgments.results.answers import NOT_BY_UNIT, Answers, Ratings, Unit, steps, values_at
from webapp.judgments.results.background import Report

MOST_DIFFERING = 50


class Reliability(Record):
    """How reliable an annotator is by a method, from 0 to 1, with its 95 % interval; None where nothing tells."""

    method: str
    value: float | None
    low: float | None = None
    high: float | None = None


class Annotator(Record):
    """One annotator's values of a label type: how many, how reliable by each method, and the bias on a long scale."""

    number: int
    labels: int
    reliability: tuple[Reliability, ...] = ()
    bias: Reliability | None = None


class Method(Record):
    """What a method says of a label type: the share of each value, and of how many decided units it is right."""

    name: str
    title: str
    shares: tuple[tuple[str, float], ...]
    right: int
    decided: int
    ties: int


class Differing(Record):
    """A unit on which the methods differ: what each says (empty: a tie), and the decision (empty: none)."""

    target: int
    place: str
    values: tuple[str, ...]
    decision: str


class LabelTruth(Record):
    """The truth of a label type or of one option of it; without `methods` it has none."""

    label: str
    title: str
    summary: str
    units: int = 0
    decided: int = 0
    mean: float | None = None
    methods: tuple[Method, ...] = ()
    annotators: tuple[Annotator, ...] = ()
    differing: tuple[Differing, ...] = ()
    differing_count: int = 0


class QueueTruth(Record):
    """The truth of a queue; `decided` of its `targets` have a decision. `annotators` are numbers."""

    annotators: tuple[int, ...]
    targets: int
    decided: int
    labels: tuple[LabelTruth, ...]

    def without(self, targets: Collection[int]) -> QueueTruth:
        """Return it without what is said of single targets, for a reader who may not know it."""
        labels = [
            label.model_copy(update={"differing": tuple(row for row in label.differing if row.target not in targets)})
            for label in self.labels
        ]
        return self.model_copy(update={"labels": tuple(labels)})


def compute(queue: Queue, report: Report) -> QueueTruth:
    """Return the truth that the judgments of a queue suggest."""
    answers = reading.of_queue(queue)
    kinds = answers.codebook.labels
    labels: list[LabelTruth] = []
    for done, label_type in enumerate(kinds):
        report(done, len(kinds))
        labels += of_label(answers, label_type)
    return QueueTruth(
        annotators=tuple(answers.annotators), targets=len(answers.targets), decided=len(answers.decided),
        labels=tuple(labels),
    )  # fmt: skip


def of_label(answers: Answers, label_type: LabelType) -> list[LabelTruth]:
    """Return the truth of a label type, or of each option of one with several values."""
    shown = LabelTruth(label=label_type.name, title=label_type.title, summary=label_type.summary)
    if label_type.kind in NOT_BY_UNIT:
        return [shown]
    ratings, decided = reading.ratings(answers, label_type), decisions(answers, label_type)
    if label_type.kind == "many_of":
        return [
            _by_categories(
                ratings.of_option(option.name),
                {unit: option.name in value for unit, value in decided.items() if isinstance(value, frozenset)},
                shown.model_copy(update={"title": f"{label_type.title}: {option.title}", "summary": "yes or no"}),
            )
            for option in label_type.options
        ]
    if label_type.kind == "scale" and not steps(label_type):
        return [_by_means(ratings, decided, shown)]
    return [_by_categories(ratings, decided, shown)]


def decisions(answers: Answers, label_type: LabelType) -> dict[Unit, Value]:
    """Return the decided values of a label type by unit."""
    return {
        (target, place): value
        for target, answer in answers.decided.items()
        if answer.marks is not None and target in answers.targets
        for place, value in values_at(label_type, answers.targets[target], answer.marks)
    }


def _by_categories(ratings: Ratings, decided: Mapping[Unit, Value], shown: LabelTruth) -> LabelTruth:
    labels = [
        Label(unit, number, value) for number, by_unit in ratings.values.items() for unit, value in by_unit.items()
    ]
    if not labels:
        return shown
    clusters: dict[Hashable, Hashable] = dict(zip(ratings.units, ratings.clusters, strict=True))
    truths = {name: method.infer(labels) for name, method in METHODS.items()}
    intervals = {name: reliability_intervals(method.infer, labels, clusters) for name, method in METHODS.items()}
    counts = Counter(label.annotator for label in labels)
    differing = [unit for unit in ratings.units if len({truth.units[unit].value for truth in truths.values()}) > 1]
    return shown.model_copy(
        update={
            "units": len(ratings.units),
            "decided": sum(unit in decided for unit in ratings.units),
            "methods": tuple(_method(name, truth, decided) for name, truth in truths.items()),
            "annotators": tuple(
                Annotator(
                    number=number,
                    labels=counts[number],
                    reliability=tuple(_reliability(name, truths[name], intervals[name], number) for name in METHODS),
                )
                for number in sorted(ratings.values)
            ),
            "differing": tuple(_differing(unit, truths, decided) for unit in differing[:MOST_DIFFERING]),
            "differing_count": len(differing),
        }
    )


def _method(name: str, truth: Truth, decided: Mapping[Unit, Value]) -> Method:
    values = Counter(value_words(each.value) for each in truth.units.values() if not each.tied)
    compared = [(each.value, decided[unit]) for unit, each in truth.units.items() if unit in decided]  # type: ignore[index]
    return Method(
        name=name,
        title=METHODS[name].title,
        shares=tuple((value, times / values.total()) for value, times in sorted(values.items())),
        right=sum(value == decision for value, decision in compared),
        decided=len(compared),
        ties=sum(each.tied for each in truth.units.values()),
    )


def _reliability(
    name: str, truth: Truth, intervals: Mapping[Hashable, tuple[float, float] | None], number: int
) -> Reliability:
    low, high = intervals.get(number) or (None, None)
    return Reliability(method=name, value=truth.reliability[number], low=low, high=high)


def _differing(unit: Unit, truths: Mapping[str, Truth], decided: Mapping[Unit, Value]) -> Differing:
    return Differing(
        target=unit[0],
        place=place_words(unit[1]),
        values=tuple(value_words(truth.units[unit].value) for truth in truths.values()),
        decision=value_words(decided.get(unit)),
    )


def _by_means(ratings: Ratings, decided: Mapping[Unit, Value], shown: LabelTruth) -> LabelTruth:
    """The truth of a scale with many steps: means of the annotators' values, and each annotator's bias."""
    games: dict[int, dict[Hashable, list[float]]] = defaultdict(lambda: defaultdict(list))
    means = []
    for unit, game in zip(ratings.units, ratings.clusters, strict=True):
        by_annotator = {number: values[unit] for number, values in ratings.values.items() if unit in values}
        numbers = {number: float(value) for number, value in by_annotator.items() if isinstance(value, int | float)}
        decision = decided.get(unit)
        means.append(float(decision) if isinstance(decision, int | float) else fmean(numbers.values()))
        for number, value in numbers.items():
            if others := [other for who, other in numbers.items() if who != number]:
                games[number][game].append(value - fmean(others))
    return shown.model_copy(
        update={
            "units": len(ratings.units),
            "decided": sum(unit in decided for unit in ratings.units),
            "mean": fmean(means) if means else None,
            "annotators": tuple(
                Annotator(number=number, labels=len(ratings.values[number]), bias=_bias(games[number]))
                for number in sorted(ratings.values)
            ),
        }
    )


def _bias(games: Mapping[Hashable, list[float]]) -> Reliability:
    means = [fmean(differences) for differences in games.values()]
    if not means:
        return Reliability(method="bias", value=None)
    low = high = None
    if len(means) > 2 and max(means) > min(means):
        estimate = interval(means, scale=(-1e9, 1e9))
        low, high = estimate.low, estimate.high
    return Reliability(method="bias", value=fmean(means), low=low, high=high)


def place_words(place: reading.Place) -> str:
    """Return a place as people read it; empty for the whole game."""
    seat, turn, start, end, other = place
    if turn is None:
        return "" if seat is None else f"seat {seat + 1}"
    if start is not None:
        return f"characters {start + 1} to {end} of turn {turn + 1}"
    return f"turn {turn + 1}" if other is None else f"turn {turn + 1} to turn {other + 1}"


def value_words(value: Hashable) -> str:
    """Return a value as people read it; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
