"""What each message of a discussion changed in the beliefs of those who heard it, as a chart and a table.

A message is the only move of a game step before and after which seats were probed. Names and texts come from people
and models; the template escapes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.records import Seat
from webapp.runs.episodes.beliefs import BeliefPoint

SHADES = 4
HEIGHT = 100
"""The height of a chart in its own coordinates; a message is as wide."""
DASHES = ("", "7 4", "2 4", "10 3 2 3")


@dataclass(frozen=True)
class SpokenMove:
    """A move that is the only one of its game step; `step` is the number of complete steps after it."""

    step: int
    seat: Seat
    text: str


@dataclass(frozen=True)
class ListenerChange:
    """One listener's probability of the truth before and after a message, which it may have spoken (`by_speaker`).

    `turned_to` is the choice that the listener considers most likely afterwards, if it was another one before.
    """

    before: float
    after: float
    by_speaker: bool
    turned_to: str = ""

    @property
    def change(self) -> float:
        """What the message changed, from -1 to 1."""
        return self.after - self.before

    @property
    def css(self) -> str:
        """The shade of the change."""
        level = math.ceil(SHADES * abs(self.change))
        return "" if abs(self.change) < 0.005 else f"tk {'up' if self.change > 0 else 'down'}-{level}"


@dataclass(frozen=True)
class HeardMessage:
    """One message with a cell for each listener of its discussion, None for one who was not asked twice."""

    step: int
    speaker: str
    role: str
    text: str
    cells: Sequence[ListenerChange | None]

    @property
    def total(self) -> float:
        """The sum of the listeners' changes."""
        return sum(cell.change for cell in self.cells if cell is not None)


@dataclass(frozen=True)
class BeliefLine:
    """One listener's line in a chart: the SVG points of its answers, and their dash pattern."""

    seat: Seat
    name: str
    role: str
    dash: str
    first: float | None
    points: Sequence[tuple[int, float]]

    @property
    def path(self) -> str:
        """The points as a polyline has them."""
        return " ".join(f"{x},{y:g}" for x, y in self.points)


@dataclass(frozen=True)
class Discussion:
    """Consecutive messages with everybody who was probed around them.

    `guess` is the height at which a uniform guess is drawn. `lines` are in the order of the messages' cells.
    """

    lines: Sequence[BeliefLine]
    messages: Sequence[HeardMessage]
    guess: float

    @property
    def width(self) -> int:
        """The width of the chart in its own coordinates."""
        return HEIGHT * len(self.messages)


def discussions(
    answers: Sequence[BeliefPoint], spoken: Sequence[SpokenMove], names: Sequence[str], roles: Sequence[str]
) -> list[Discussion]:
    """The discussions of a game in order; `roles` is empty for a game without roles."""
    rounds: dict[int, dict[Seat, BeliefPoint]] = {}
    for answer in answers:
        if answer.right is not None:
            rounds.setdefault(answer.step, {})[answer.seat] = answer
    heard = [move for move in spoken if move.seat < len(names) and {move.step - 1, move.step} <= rounds.keys()]
    groups: list[list[SpokenMove]] = []
    for move in sorted(heard, key=lambda move: move.step):
        if groups and groups[-1][-1].step == move.step - 1:
            groups[-1].append(move)
        else:
            groups.append([move])
    return [_discussion(group, rounds, names, roles) for group in groups]


def _discussion(
    moves: Sequence[SpokenMove],
    rounds: Mapping[int, Mapping[Seat, BeliefPoint]],
    names: Sequence[str],
    roles: Sequence[str],
) -> Discussion:
    start = moves[0].step - 1
    asked = [rounds[start], *(rounds[move.step] for move in moves)]
    listeners = sorted({seat for row in asked for seat in row})
    lines = [
        BeliefLine(
            seat=seat,
            name=names[seat],
            role=roles[seat] if roles else "",
            dash=DASHES[place % len(DASHES)],
            first=asked[0][seat].right if seat in asked[0] else None,
            points=[(HEIGHT * at, _height(row[seat].right)) for at, row in enumerate(asked) if seat in row],
        )
        for place, seat in enumerate(listeners)
    ]
    messages = [
        HeardMessage(
            step=move.step,
            speaker=names[move.seat],
            role=roles[move.seat] if roles else "",
            text=move.text,
            cells=[_cell(seat, move, rounds) for seat in listeners],
        )
        for move in moves
    ]
    return Discussion(lines, messages, _height(next(iter(asked[0].values())).even))


def _height(probability: float | None) -> float:
    return round(HEIGHT * (1 - (probability or 0.0)), 1)


def _cell(seat: Seat, move: SpokenMove, rounds: Mapping[int, Mapping[Seat, BeliefPoint]]) -> ListenerChange | None:
    before, after = (rounds[step].get(seat) for step in (move.step - 1, move.step))
    if before is None or after is None or before.right is None or after.right is None:
        return None
    first, then = _likeliest(before), _likeliest(after)
    turned_to = then if first and then != first else ""
    return ListenerChange(before.right, after.right, by_speaker=seat == move.seat, turned_to=turned_to)


def _likeliest(answer: BeliefPoint) -> str:
    """The choice that an answer considers most likely; empty if several are equally likely."""
    most = max(answer.probabilities.values(), default=0.0)
    choices = [choice for choice, probability in answer.probabilities.items() if probability == most]
    return choices[0] if len(choices) == 1 else ""
