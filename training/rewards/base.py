"""The protocol of a reward: a played episode in, returns and fitness of turns out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from training.records import Episode, Judgment, Seat


@dataclass(frozen=True, slots=True)
class Score:
    """What an episode earned: a return per seat; a reward and `passed` per turn; the judgments behind it, if any."""

    returns: Mapping[Seat, float]
    turn_rewards: tuple[float, ...]
    passed: tuple[bool, ...]
    judgments: tuple[Judgment, ...] = ()


class Reward(Protocol):
    """Scores episodes."""

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score one episode that has no error; raise `JudgeError` if it could not be scored."""
