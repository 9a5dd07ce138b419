"""Ablation: no critic. Every token of a seat has the seat's whole reward minus the mean of its peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from training.methods.advantages import Whitening, filtered
from training.methods.omar.base import LearningSeat, Omar
from training.records import ScoredEpisode, Seat

if TYPE_CHECKING:
    from training.records import Floats

Replay = tuple[str, int, Seat]
"""What makes two seats the same role: scenario, seed, seat."""


class GroupRelative(Omar):
    """The peers are all seats of the same conversation, or the same seat in all replays of the same start."""

    def group(self) -> Literal["conversation", "start"]:
        """Return `start` where the baseline is over replays."""
        return "start" if self.config.baseline == "role" else "conversation"

    def advantages(self, seats: Sequence[LearningSeat], group: Sequence[ScoredEpisode]) -> list[Floats]:
        """Return each seat's reward minus its peers' mean, once per turn."""
        totals: list[dict[Seat, float]] = [self.results(scored) for scored in group]
        for seat in seats:  # what its turns and tokens earned on the way counts, too
            totals[seat.index][seat.trajectory.seat] = float(seat.trajectory.rewards.sum())
        replays: dict[Replay, list[float]] = {}
        for scored, rewards in zip(group, totals, strict=True):
            for place, reward in rewards.items():
                replays.setdefault(_replay(scored, place), []).append(reward)
        advantages = []
        for seat in seats:
            place, rewards = seat.trajectory.seat, totals[seat.index]
            by_role = self.config.baseline == "role"
            peers = replays[_replay(seat.scored, place)] if by_role else list(rewards.values())
            advantages.append(np.full(len(seat.trajectory.turns), rewards[place] - float(np.mean(peers))))
        return advantages

    def write(self, seat: LearningSeat, advantages: Floats, whitened: Whitening) -> None:
        """Write the seat's advantage on all of its tokens; a failing turn is filtered."""
        credit = filtered(advantages, seat.trajectory.passed, self.config.filter, whitened)
        for turn, value in zip(seat.trajectory.turns, credit, strict=True):
            seat.builder.ppo(turn.trace, turn.sampled, float(value))
            seat.builder.turn(turn.trace, turn.index, float(value))


def _replay(scored: ScoredEpisode, seat: Seat) -> Replay:
    return scored.episode.scenario.id, scored.episode.scenario.seed, seat
