"""Ablation: no turns. A seat's sampled tokens are one long sequence of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from training.methods.advantages import Whitening, filtered, gae
from training.methods.omar.base import TOKEN, LearningSeat, Omar
from training.records import ScoredEpisode

if TYPE_CHECKING:
    from training.methods.omar.config import OmarConfig
    from training.records import Floats


class Flat(Omar):
    """GAE over all of a seat's own tokens with γ and λ; tokens that it only read are no steps."""

    def __init__(self, config: OmarConfig) -> None:
        super().__init__(config, (TOKEN,))

    def advantages(self, seats: Sequence[LearningSeat], group: Sequence[ScoredEpisode]) -> list[Floats]:
        """Return the advantages of each seat's tokens, turn after turn."""
        return [
            gae(
                np.concatenate(self._rewards(seat)).tolist(),
                np.concatenate(seat.token_values(TOKEN)).tolist(),
                self.config.gamma,
                self.config.lam,
            )
            for seat in seats
        ]

    def write(self, seat: LearningSeat, advantages: Floats, whitened: Whitening) -> None:
        """Write each token its own advantage; the filter applies to every token of a failing turn."""
        trajectory, values = seat.trajectory, seat.token_values(TOKEN)
        by_turn = np.split(advantages, np.cumsum([len(turn) for turn in trajectory.turns])[:-1])
        for k, turn in enumerate(trajectory.turns):
            verdicts = [trajectory.passed[k]] * len(turn)
            tokens = filtered(by_turn[k], verdicts, self.config.filter, whitened)
            seat.builder.ppo(turn.trace, turn.sampled, tokens)
            seat.builder.turn(turn.trace, turn.index, float(tokens.mean()))
            seat.builder.value(TOKEN, turn.trace, turn.prefixes, by_turn[k] + values[k])

    def _rewards(self, seat: LearningSeat) -> list[Floats]:
        """Return each turn's reward on its tokens: what was paid at a token stays there, the rest is on the last."""
        paid = seat.token_rewards() or [np.zeros(len(turn)) for turn in seat.trajectory.turns]
        rewards = [row.copy() for row in paid]
        for row, total in zip(rewards, seat.trajectory.rewards, strict=True):
            row[-1] += total - row.sum()
        return rewards
