"""What probed seats believed in a game, over its steps and at one of them, as pages show it.

Choices and questions come from scenarios: they are passed on as text and escaped by the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.records import Seat


@dataclass(frozen=True)
class Believed:
    """One answer to a probe: the probability of every choice, after `step` complete steps of the game."""

    step: int
    seat: Seat
    question: str
    probabilities: Mapping[str, float]
    truth: Sequence[str] = ()

    @property
    def right(self) -> float | None:
        """The probability of all right choices together; None where no answer is right."""
        return sum(self.probabilities.get(choice, 0.0) for choice in self.truth) if self.truth else None

    @property
    def even(self) -> float | None:
        """What a guess among all choices alike would give the right ones; None where no answer is right."""
        return len(self.truth) / len(self.probabilities) if self.truth and self.probabilities else None

    @property
    def shares(self) -> tuple[float | None, float | None]:
        """Both, as a table's columns."""
        return self.right, self.even


@dataclass(frozen=True)
class SeatBeliefs:
    """One seat's answers in order; `scored` says whether any question had a right answer."""

    seat: Seat
    name: str
    role: str
    points: Sequence[Believed]

    @property
    def scored(self) -> bool:
        """Whether there is anything to draw."""
        return any(point.right is not None for point in self.points)


@dataclass(frozen=True)
class Asked:
    """One question of one step: a row for each choice, with the probability that each asked seat gave it.

    A row is (choice, whether it is right, one probability or None for every seat): nobody can choose itself.
    """

    step: int
    question: str
    names: Sequence[str]
    rows: Sequence[tuple[str, bool, Sequence[float | None]]]


def over_time(found: Sequence[Believed], names: Sequence[str], roles: Sequence[str]) -> list[SeatBeliefs]:
    """The answers seat by seat, in seat order; `roles` is empty for a game without them."""
    asked = sorted({one.seat for one in found})
    return [
        SeatBeliefs(
            seat=seat,
            name=names[seat],
            role=roles[seat] if roles else "",
            points=sorted((one for one in found if one.seat == seat), key=lambda one: one.step),
        )
        for seat in asked
    ]


def at_step(found: Sequence[Believed], names: Sequence[str], step: int) -> list[Asked]:
    """All distributions of the newest probe up to `step`, one entry a question; empty if nobody was asked so far."""
    newest = max((one.step for one in found if one.step <= step), default=None)
    by_question: dict[str, list[Believed]] = {}
    for one in sorted((one for one in found if one.step == newest), key=lambda one: one.seat):
        by_question.setdefault(one.question, []).append(one)
    return [_asked(question, answers, names) for question, answers in by_question.items()]


def _asked(question: str, answers: Sequence[Believed], names: Sequence[str]) -> Asked:
    choices = dict.fromkeys(choice for one in answers for choice in one.probabilities)
    right = {choice for one in answers for choice in one.truth}
    order = {name: place for place, name in enumerate(names)}
    listed = sorted(choices, key=lambda choice: order.get(choice, len(order)))
    return Asked(
        step=answers[0].step,
        question=question,
        names=[names[one.seat] for one in answers],
        rows=[(choice, choice in right, [one.probabilities.get(choice) for one in answers]) for choice in listed],
    )
