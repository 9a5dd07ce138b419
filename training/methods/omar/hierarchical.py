"""The method: a seat's reward becomes advantages of its turns, and each of these the reward of the turn's tokens.

Source: "One Model, All Roles", §3.2 (hierarchical advantage) and §4.3 (quality filter).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from training.methods.advantages import Whitening, filtered, gae, hierarchical_gae, token_gae
from training.methods.omar.base import SHARED, TOKEN, TURN, LearningSeat, Omar
from training.records import ScoredEpisode

if TYPE_CHECKING:
    from training.methods.omar.config import OmarConfig
    from training.records import Floats


class Hierarchical(Omar):
    """GAE over turns, then GAE over the tokens inside each turn."""

    def __init__(self, config: OmarConfig) -> None:
        single_head = config.critic_heads == "one"
        self.turn_head, self.token_head = (SHARED, SHARED) if single_head else (TURN, TOKEN)
        super().__init__(config, (self.turn_head, self.token_head))

    def advantages(self, seats: Sequence[LearningSeat], group: Sequence[ScoredEpisode]) -> list[Floats]:
        """Return the advantages of each seat's turns: the first level."""
        config = self.config
        return [
            gae(seat.trajectory.rewards.tolist(), self._turn_values(seat).tolist(), config.gamma_turn, config.lam_turn)
            for seat in seats
        ]

    def write(self, seat: LearningSeat, advantages: Floats, whitened: Whitening) -> None:
        """Write both levels; the token head is regressed on the return of what the turn hands down."""
        config, trajectory = self.config, seat.trajectory
        values, paid = seat.token_values(self.token_head), seat.token_rewards()
        _, tokens = hierarchical_gae(
            trajectory.rewards.tolist(),
            self._turn_values(seat).tolist(),
            values,
            config.gamma_turn,
            config.lam_turn,
            config.gamma,
            config.lam,
            trajectory.passed,
            filter=config.filter,
            whitening=whitened,
            token_rewards=paid,
        )
        pseudo = filtered(advantages, trajectory.passed, config.filter, whitened)
        for k, turn in enumerate(trajectory.turns):
            before_cut = token_gae(float(pseudo[k]), values[k], config.gamma, config.lam, paid[k] if paid else None)
            seat.builder.turn(turn.trace, turn.index, float(pseudo[k]))
            seat.builder.ppo(turn.trace, turn.sampled, tokens[k])
            seat.builder.value(self.token_head, turn.trace, turn.prefixes, before_cut + values[k])
        self._write_turn_targets(seat, advantages)

    def _turn_values(self, seat: LearningSeat) -> Floats:
        """Return the value of each turn, read before its first token or (the paper) after its last."""
        heads = seat.scored.values[self.turn_head]
        if self.config.turn_value == "last_token":
            return np.array([turn.after(heads) for turn in seat.trajectory.turns])
        return np.array([turn.before(heads)[0] for turn in seat.trajectory.turns])

    def _write_turn_targets(self, seat: LearningSeat, advantages: Floats) -> None:
        """The turn value is regressed on the turn's return A + V; the paper's single head, after the turn, on A."""
        at_end = self.config.turn_value == "last_token"
        returns = advantages if at_end and self.turn_head == SHARED else advantages + self._turn_values(seat)
        for turn, target in zip(seat.trajectory.turns, returns, strict=True):
            place = turn.stop - 1 if at_end else turn.first - 1
            seat.builder.value(self.turn_head, turn.trace, slice(place, place + 1), float(target))
