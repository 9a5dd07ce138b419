"""What is measured of participants: the result of their seat, agreement, and the items of the questionnaires."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.evaluate.intervals import UNIT
from training.games import REGISTRY
from webapp.experiments.models import Arm, Experiment, Participant, ParticipantQuerySet, Question

RETURN = "return"
Value = Callable[[Participant], float | None]


@dataclass(frozen=True)
class Measure:
    """A number of each participant; `scale` are its lowest and highest possible value, None if they are unknown or
    depend on the arm.
    """

    name: str
    title: str
    value: Value
    scale: tuple[float, float] | None = None

    def scale_in(self, *arms: Arm) -> tuple[float, float] | None:
        """The lowest and highest possible value in these arms; None if they are unknown."""
        if self.name != RETURN:
            return self.scale
        if any(arm.game not in REGISTRY for arm in arms):
            return None
        return min(arm.spec.low for arm in arms), max(arm.spec.high for arm in arms)


def analysed(experiment: Experiment) -> ParticipantQuerySet:
    """The participants of the analysis: complete ones, in groups whose members are all complete."""
    rows = experiment.participants.exportable().filter(outcome=Participant.Outcome.COMPLETED)
    return rows.filter(group__isnull=False, group__broken_why="")


def measures_of(experiment: Experiment) -> list[Measure]:
    """Every measure of an experiment."""
    measures = [Measure(RETURN, "Result of the seat", result), Measure("agreement", "Agreement", agreement, UNIT)]
    for question in experiment.questions.filter(right=""):
        measures += _of_question(question)
    return measures


def seat_number(participant: Participant) -> int | None:
    """The number of a participant's seat; uses prefetched seats."""
    if participant.group is None:
        return None
    seats = participant.group.match.seats.all()
    return next((seat.seat for seat in seats if seat.user_id == participant.user_id), None)


def result(participant: Participant) -> float | None:
    """What the game counts for the seat of a participant, None without a result."""
    seat = seat_number(participant)
    if participant.group is None or seat is None:
        return None
    value = participant.group.match.returns.get(str(seat))
    return None if value is None else float(value)


def agreement(participant: Participant) -> float | None:
    """1 if the match ended with an agreement, 0 if not, None if the game knows none."""
    value = None if participant.group is None else participant.group.match.metrics.get("agreement")
    return None if value is None else float(value)


def _of_question(question: Question) -> list[Measure]:
    if question.kind == Question.Kind.LIKERT:
        return [Measure(question.name, question.text, _number(question.name), (1.0, float(len(question.options))))]
    if question.kind == Question.Kind.NUMBER:
        known = question.low is not None and question.high is not None
        scale = (question.low, question.high) if known else None
        return [Measure(question.name, question.text, _number(question.name), scale)]  # type: ignore[arg-type]
    if question.kind == Question.Kind.CHOICE:
        return [
            Measure(f"{question.name}={option}", f"{question.text} {option}", _chose(question.name, option), UNIT)
            for option in question.options
        ]
    return []


def _number(name: str) -> Value:
    def value(participant: Participant) -> float | None:
        answer = participant.answers.get(name)
        return None if answer is None else float(answer)

    return value


def _chose(name: str, option: str) -> Value:
    def value(participant: Participant) -> float | None:
        answer = participant.answers.get(name)
        return None if answer is None else float(answer == option)

    return value
