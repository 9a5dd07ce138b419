"""Beliefs of probed seats, over a game's steps and at one step.

Choices and questions come from scenarios; the template escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.records import Seat


@dataclass(frozen=True)
class BeliefPoint:
    """One answer to a probe: the probability of every choice, after `step` complete steps of the game."""

    step: int
    seat: Seat
    question: str
    probabilities: Mapping[str, float]
    truth: Sequence[str] = ()

    @property
    def right(self) -> float | None:
        """The total probability of the right choices; None if no choice is right."""
        return sum(self.probabilities.get(choice, 0.0) for choice in self.truth) if self.truth else None

    @property
    def even(self) -> float | None:
        """The total probability of the right choices under a uniform guess; None if no choice is right."""
        return len(self.truth) / len(self.probabilities) if self.truth and self.probabilities else None

    @property
    def shares(self) -> tuple[float | None, float | None]:
        """`right` and `even`, as a table's columns."""
        return self.right, self.even


@dataclass(frozen=True)
class SeatBeliefs:
    """One seat's answers in order; `scored` says whether any question had a right answer."""

    seat: Seat
    name: str
    role: str
    points: Sequence[BeliefPoint]

    @property
    def scored(self) -> bool:
        """Whether any question had a right answer."""
        return any(point.right is not None for point in self.points)


@dataclass(frozen=True)
class QuestionTable:
    """One question of one step: a row for each choice, with the probability that each asked seat gave it.

    A row is (choice, whether it is right, one probability or None for every seat): nobody can choose itself.
    """

    step: int
    question: str
    names: Sequence[str]
    rows: Sequence[tuple[str, bool, Sequence[float | None]]]


def over_time(beliefs: Sequence[BeliefPoint], names: Sequence[str], roles: Sequence[str]) -> list[SeatBeliefs]:
    """The answers grouped by seat, in seat order; `roles` is empty for a game without roles."""
    probed_seats = sorted({belief.seat for belief in beliefs})
    return [
        SeatBeliefs(
            seat=seat,
            name=names[seat],
            role=roles[seat] if roles else "",
            points=sorted((belief for belief in beliefs if belief.seat == seat), key=lambda belief: belief.step),
        )
        for seat in probed_seats
    ]


def at_step(beliefs: Sequence[BeliefPoint], names: Sequence[str], step: int) -> list[QuestionTable]:
    """The distributions of the newest probe up to `step`, one entry per question; empty before the first probe."""
    newest = max((belief.step for belief in beliefs if belief.step <= step), default=None)
    by_question: dict[str, list[BeliefPoint]] = {}
    for belief in sorted((belief for belief in beliefs if belief.step == newest), key=lambda belief: belief.seat):
        by_question.setdefault(belief.question, []).append(belief)
    return [_question_table(question, answers, names) for question, answers in by_question.items()]


def _question_table(question: str, answers: Sequence[BeliefPoint], names: Sequence[str]) -> QuestionTable:
    choices = dict.fromkeys(choice for belief in answers for choice in belief.probabilities)
    right = {choice for belief in answers for choice in belief.truth}
    order = {name: place for place, name in enumerate(names)}
    listed = sorted(choices, key=lambda choice: order.get(choice, len(order)))
    return QuestionTable(
        step=answers[0].step,
        question=question,
        names=[names[belief.seat] for belief in answers],
        rows=[(choice, choice in right, [belief.probabilities.get(choice) for belief in answers]) for choice in listed],
    )
