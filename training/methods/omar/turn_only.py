"""Ablation: no second level. Every token of a turn has the turn's advantage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from training.methods.advantages import Whitening, filtered, gae
from training.methods.omar.base import TURN, LearningSeat, Omar
from training.records import ScoredEpisode

if TYPE_CHECKING:
    from training.methods.omar.config import OmarConfig
    from training.records import Floats


class TurnOnly(Omar):
    """GAE over turns with γ_turn and λ_turn; the value of a turn is read before its first token."""

    def __init__(self, config: OmarConfig) -> None:
        super().__init__(config, (TURN,))

    def advantages(self, seats: Sequence[LearningSeat], group: Sequence[ScoredEpisode]) -> list[Floats]:
        """Return the advantages of each seat's turns."""
        gamma, lam = self.config.gamma_turn, self.config.lam_turn
        return [gae(seat.trajectory.rewards.tolist(), _turn_values(seat).tolist(), gamma, lam) for seat in seats]

    def write(self, seat: LearningSeat, advantages: Floats, whitened: Whitening) -> None:
        """Write each turn's advantage on all of its tokens, and its return before the turn."""
        credit = filtered(advantages, seat.trajectory.passed, self.config.filter, whitened)
        returns = advantages + _turn_values(seat)
        for k, turn in enumerate(seat.trajectory.turns):
            seat.builder.ppo(turn.trace, turn.sampled, float(credit[k]))
            seat.builder.turn(turn.trace, turn.index, float(credit[k]))
            seat.builder.value(TURN, turn.trace, slice(turn.first - 1, turn.first), float(returns[k]))


def _turn_values(seat: LearningSeat) -> Floats:
    return np.array([turn.before(seat.scored.values[TURN])[0] for turn in seat.trajectory.turns])
