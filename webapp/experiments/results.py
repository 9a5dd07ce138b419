"""Results by arm, in the statistics of head-to-heads: 95 % intervals of means, and differences with their intervals.

People at one table are not independent, so the unit is the group: values of its participants are averaged first. Every
other arm is compared with the first one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from training.errors import BadInput
from training.evaluate import intervals
from training.evaluate.intervals import Interval
from webapp.core.forest import Mark, mark_of, reach_of
from webapp.experiments import measures
from webapp.experiments.measures import Measure
from webapp.experiments.models import Arm, Experiment, Participant


@dataclass(frozen=True)
class Row:
    """One measure of two arms, as the forest plot shows it."""

    title: str
    difference: Mapping[str, float] | None
    mark: Mark | None


@dataclass(frozen=True)
class Comparison:
    """An arm against the first one: `models` are both names, as the forest plot calls them."""

    models: tuple[str, str]
    rows: Sequence[Row]
    sentences: Sequence[str]


@dataclass(frozen=True)
class Results:
    """Each measure with its interval in each arm (None: no value), and the comparisons."""

    arms: Sequence[Arm]
    groups: Sequence[int]
    people: Sequence[int]
    lines: Sequence[tuple[Measure, Sequence[Interval | None]]]
    differences: Sequence[tuple[Arm, Sequence[tuple[Measure, Interval | None]]]]

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons as the page shows them."""
        return [_comparison(arm, self.arms[0], rows) for arm, rows in self.differences]

    @property
    def few(self) -> bool:
        """Whether an arm has so few groups that a caution is due."""
        return any(count < intervals.ENOUGH for count in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON data."""
        return {
            "arms": [
                {"name": arm.name, "groups": groups, "participants": people}
                for arm, groups, people in zip(self.arms, self.groups, self.people, strict=True)
            ],
            "measures": {
                measure.name: {
                    arm.name: None if interval is None else interval.to_dict()
                    for arm, interval in zip(self.arms, of_arms, strict=True)
                }
                for measure, of_arms in self.lines
            },
            "differences": {
                arm.name: {measure.name: None if interval is None else interval.to_dict() for measure, interval in rows}
                for arm, rows in self.differences
            },
        }


def compute(experiment: Experiment) -> Results:
    """The results of the participants so far."""
    arms = list(experiment.arms.all())
    people: dict[int, list[Participant]] = defaultdict(list)
    for participant in measures.analysed(experiment):
        people[participant.arm_id or 0].append(participant)
    lines, values = [], {}
    for measure in measures.measures_of(experiment):
        by_arm = [group_means(measure, people[arm.pk]) for arm in arms]
        if any(by_arm):
            values[measure.name] = by_arm
            lines.append((measure, [_interval(means, measure.scale) for means in by_arm]))
    return Results(
        arms=arms,
        groups=[len({each.group_id for each in people[arm.pk]}) for arm in arms],
        people=[len(people[arm.pk]) for arm in arms],
        lines=lines,
        differences=[
            (arm, [(measure, difference(values[measure.name][at], values[measure.name][0])) for measure, _ in lines])
            for at, arm in enumerate(arms)
            if at
        ],
    )


def group_means(measure: Measure, people: Sequence[Participant]) -> list[float]:
    """One value per group: the mean of its participants' values, groups in the order of their first participant."""
    groups: dict[int, list[float]] = defaultdict(list)
    for participant in people:
        value = measure.value(participant)
        if value is not None:
            groups[participant.group_id or 0].append(value)
    return [fmean(values) for values in groups.values()]


def _interval(means: Sequence[float], scale: tuple[float, float] | None) -> Interval | None:
    return intervals.interval(means, scale=scale) if means else None


def difference(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """The difference of two arms' means over groups, None where there is no interval for it."""
    units: list[tuple[Sequence[float], Sequence[float]]] = [((value,), ()) for value in first]
    units += [((), (value,)) for value in second]
    try:
        return intervals.difference(units)
    except BadInput:  # an arm without values, or with a single group
        return None


def _comparison(arm: Arm, reference: Arm, rows: Sequence[tuple[Measure, Interval | None]]) -> Comparison:
    differences = [(measure, None if each is None else each.to_dict()) for measure, each in rows]
    widest = max((reach_of(each) for measure, each in differences if measure.scale == intervals.UNIT), default=0.0)
    plotted = [
        Row(measure.title, each, mark_of(each, widest if measure.scale == intervals.UNIT else reach_of(each)))
        for measure, each in differences
    ]
    sentences = [_sentence(measure.title, each, arm.name, reference.name) for measure, each in differences if each]
    return Comparison((arm.name, reference.name), plotted, sentences)


def _sentence(title: str, each: Mapping[str, float], arm: str, reference: str) -> str:
    if each["low"] <= 0 <= each["high"]:
        return f"{title}: no difference of {arm} and {reference} is shown."
    higher, lower = (arm, reference) if each["mean"] > 0 else (reference, arm)
    return f"{title}: {higher} is above {lower}."
