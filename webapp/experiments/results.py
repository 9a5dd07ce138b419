"""Results by arm, in the statistics of head-to-heads: 95 % intervals of means, and differences with their intervals.

People at one table are not independent, so the unit is the group: values of its participants are averaged first. Every
other arm is compared with the first one. One group says nothing of the others, so the interval of a single value is
that of its scale, and there is none without a scale.
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

LEVEL = 0.95
Scale = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One measure of two arms, as the forest plot shows it."""

    title: str
    difference: Mapping[str, float] | None
    mark: Mark | None


@dataclass(frozen=True)
class Comparison:
    """An arm against the first one: `models` are both names, as the forest plot calls them, `groups` their groups, and
    `missing` the titles of measures without a difference.
    """

    models: tuple[str, str]
    groups: tuple[int, int]
    rows: Sequence[Row]
    sentences: Sequence[str]
    missing: Sequence[str]


@dataclass(frozen=True)
class Estimate:
    """The mean of `n` groups of an arm; `interval` is None for a single group on an unknown scale."""

    mean: float
    n: int
    interval: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON data."""
        if self.interval is not None:
            return self.interval.to_dict()
        return {"mean": self.mean, "low": None, "high": None, "n": self.n, "level": LEVEL}


@dataclass(frozen=True)
class Results:
    """Each measure with its mean in each arm (None: no value), and the comparisons."""

    arms: Sequence[Arm]
    groups: Sequence[int]
    people: Sequence[int]
    lines: Sequence[tuple[Measure, Sequence[Estimate | None]]]
    differences: Sequence[tuple[Arm, Sequence[tuple[Measure, Interval | None]]]]

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons as the page shows them."""
        groups = {arm.pk: count for arm, count in zip(self.arms, self.groups, strict=True)}
        reference = self.arms[0]
        return [
            _comparison(arm, reference, (groups[arm.pk], groups[reference.pk]), rows) for arm, rows in self.differences
        ]

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
                    arm.name: None if estimate is None else estimate.to_dict()
                    for arm, estimate in zip(self.arms, of_arms, strict=True)
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

    def against_first(measure: Measure, by_arm: Sequence[Sequence[float]], at: int) -> Interval | None:
        return difference(by_arm[at], by_arm[0], measure.scale_in(arms[0], arms[at]))

    for measure in measures.measures_of(experiment):
        by_arm = [group_means(measure, people[arm.pk]) for arm in arms]
        if any(by_arm):
            values[measure.name] = by_arm
            of_arms = [
                _estimate(means, measure.scale_in(arm)) if means else None
                for arm, means in zip(arms, by_arm, strict=True)
            ]
            lines.append((measure, of_arms))
    return Results(
        arms=arms,
        groups=[len({each.group_id for each in people[arm.pk]}) for arm in arms],
        people=[len(people[arm.pk]) for arm in arms],
        lines=lines,
        differences=[
            (arm, [(measure, against_first(measure, values[measure.name], at)) for measure, _ in lines])
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


def _estimate(means: Sequence[float], scale: Scale | None) -> Estimate:
    alone = scale is None and len(means) < 2
    return Estimate(fmean(means), len(means), None if alone else intervals.interval(means, LEVEL, scale))


def difference(first: Sequence[float], second: Sequence[float], scale: Scale | None = None) -> Interval | None:
    """The difference of two arms' means over groups, None where there is no interval for it.

    `scale` are the lowest and the highest possible value. Shares have exact bounds, and a single group those of its
    scale (`training.evaluate.intervals.difference`), so values are compared as shares of the scale.
    """
    if scale is None and min(len(first), len(second)) < 2:
        return None
    low, high = scale or intervals.UNIT
    width = high - low
    units: list[tuple[Sequence[float], Sequence[float]]] = [(((value - low) / width,), ()) for value in first]
    units += [((), ((value - low) / width,)) for value in second]
    try:
        share = intervals.difference(units, LEVEL)
    except BadInput:  # an arm without values
        return None
    return Interval(mean=share.mean * width, low=share.low * width, high=share.high * width, n=share.n, level=LEVEL)


def _comparison(
    arm: Arm, reference: Arm, groups: tuple[int, int], rows: Sequence[tuple[Measure, Interval | None]]
) -> Comparison:
    differences = [(measure, None if each is None else each.to_dict()) for measure, each in rows]
    widest = max((reach_of(each) for measure, each in differences if measure.scale == intervals.UNIT), default=0.0)
    plotted = [
        Row(measure.title, each, mark_of(each, widest if measure.scale == intervals.UNIT else reach_of(each)))
        for measure, each in differences
    ]
    sentences = [_sentence(measure.title, each, arm.name, reference.name) for measure, each in differences if each]
    missing = [measure.title for measure, each in differences if each is None]
    return Comparison((arm.name, reference.name), groups, plotted, sentences, missing)


def _sentence(title: str, each: Mapping[str, float], arm: str, reference: str) -> str:
    if each["low"] <= 0 <= each["high"]:
        return f"{title}: no difference of {arm} and {reference} is shown."
    higher, lower = (arm, reference) if each["mean"] > 0 else (reference, arm)
    return f"{title}: {higher} is above {lower}."
