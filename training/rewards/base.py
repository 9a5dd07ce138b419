"""The protocol of a reward: it maps an episode to returns of seats and to turns that pass the filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from training.records import Episode, Judgment, Seat

EARNED = "earned"
"""The part of the reward that the game itself paid before its end."""


@dataclass(frozen=True, slots=True)
class Score:
    """An episode's score: a return per seat, `passed` per turn, what each turn earned, and the judgments, if any.

    `parts` are the components of the turns' rewards by name, each with one number per turn (`Episode.turns`). What
    the game paid before its end is the part `EARNED`; `returns` contain it, but none of the other parts. `seat_parts`
    are components of the returns themselves, by name and seat.
    """

    returns: Mapping[Seat, float]
    passed: tuple[bool, ...]
    parts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    judgments: tuple[Judgment, ...] = ()
    seat_parts: Mapping[str, Mapping[Seat, float]] = field(default_factory=dict)

    @property
    def turn_rewards(self) -> tuple[float, ...]:
        """What each turn earned, all parts together."""
        return tuple(sum(row[turn] for row in self.parts.values()) for turn in range(len(self.passed)))

    def at_end(self, episode: Episode) -> dict[Seat, float]:
        """Return what each seat receives at the end of its episode: its return without what was paid before."""
        rest = dict(self.returns)
        for turn, paid in zip(episode.turns, self.parts.get(EARNED, ()), strict=False):
            rest[turn.seat] -= paid
        return rest

    def to_dict(self) -> dict[str, Any]:
        """Return the score as JSON data, which `from_dict` reads."""
        return {
            "returns": {str(seat): value for seat, value in self.returns.items()},
            "passed": list(self.passed),
            "parts": {name: list(row) for name, row in self.parts.items()},
            "judgments": [judgment.to_dict() for judgment in self.judgments],
            "seat_parts": {
                name: {str(seat): value for seat, value in values.items()} for name, values in self.seat_parts.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the score that `to_dict` wrote; raise `KeyError` or `BadInput` for other data."""
        return cls(
            {int(seat): float(value) for seat, value in data["returns"].items()},
            tuple(bool(each) for each in data["passed"]),
            {name: tuple(float(each) for each in row) for name, row in data["parts"].items()},
            tuple(Judgment.from_dict(each) for each in data["judgments"]),
            {
                name: {int(seat): float(value) for seat, value in values.items()}
                for name, values in data.get("seat_parts", {}).items()  # not in files of earlier releases
            },
        )


class Reward(Protocol):
    """Scores episodes."""

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score one episode that has no error; raise `JudgeError` if it could not be scored."""
