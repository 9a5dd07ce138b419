"""The protocol of a reward: it maps an episode to returns of seats and to turns that pass the filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from training.records import Episode, Judgment, Seat


@dataclass(frozen=True, slots=True)
class Score:
    """An episode's score: a return per seat, a reward and `passed` per turn, and the judgments, if any."""

    returns: Mapping[Seat, float]
    turn_rewards: tuple[float, ...]
    passed: tuple[bool, ...]
    judgments: tuple[Judgment, ...] = ()


class Reward(Protocol):
    """Scores episodes."""

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score one episode that has no error; raise `JudgeError` if it could not be scored."""
