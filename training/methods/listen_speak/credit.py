"""The method: turns the episodes of a game of deduction into advantages, and into weights on text to be predicted.

A step of GAE is an action (a turn among listed moves, whose tokens share one advantage) or a token of a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from training.methods.advantages import gae
from training.methods.credit_builder import CreditBuilder
from training.methods.listen_speak.messages import belief_changes, message_turns
from training.methods.trajectories import (
    SeatTrajectory,
    TurnTokens,
    observed_tokens,
    probe_answers,
    seat_trajectories,
    turn_tokens,
)
from training.records import EpisodeCredit, Needs, ScoredEpisode

if TYPE_CHECKING:
    from training.methods.listen_speak.config import ListenSpeakConfig
    from training.records import Floats

HEAD = "token"
"""The name of the value head, which is read before each step."""


class _Steps(NamedTuple):
    """The steps of one turn: where their values are read, their rewards, values, and discounts to the next step."""

    states: slice
    rewards: Floats
    values: Floats
    discounts: Floats


class ListenSpeak:
    """The method keeps nothing from one step to the next.

    It receives all episodes of a game at once: answers to probes are few, many episodes have none, and their mean is
    over the whole training step.
    """

    def __init__(self, config: ListenSpeakConfig) -> None:
        self.config = config
        self.needs = Needs(critic=(HEAD,) if config.reinforces else (), group="game", probes=config.variant != "base")

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return advantages on the sampled tokens of every learning seat, and weights on what it is to predict."""
        builders = [CreditBuilder(scored) for scored in group]
        if self.config.reinforces:
            for scored, builder in zip(group, builders, strict=True):
                self._reinforce(scored, builder)
        self._predict(group, builders)
        return [builder.credit() for builder in builders]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: there is no state."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Accept the empty state."""
        if state:
            raise ValueError("listen_speak keeps no state")

    # --- rewards ---

    def _reinforce(self, scored: ScoredEpisode, builder: CreditBuilder) -> None:
        """Write the advantages of every learning seat, and the targets of the value head."""
        messages = message_turns(scored.episode, turn_tokens(scored.episode))
        changes = belief_changes(scored.episode) if self.config.speaking_weight else {}
        scored = self._with_penalties(scored, messages)
        for trajectory in seat_trajectories(scored, scored.returns):
            steps = [
                self._steps(scored, turn, reward, spoken=turn.index in messages)
                for turn, reward in zip(trajectory.turns, self._rewards(scored, trajectory, changes), strict=True)
            ]
            rewards, values, discounts = (np.concatenate(parts) for parts in list(zip(*steps, strict=True))[1:])
            advantages = gae(rewards, values, discounts, self.config.lam)
            ends = np.cumsum([len(step.rewards) for step in steps])[:-1]
            for turn, step, row in zip(trajectory.turns, steps, np.split(advantages, ends), strict=True):
                weight = self.config.message_weight if turn.index in messages else 1.0
                builder.ppo(turn.trace, turn.sampled, weight * row)
                builder.turn(turn.trace, turn.index, float(row.mean()))
                builder.value(HEAD, turn.trace, step.states, row + step.values)

    def _with_penalties(self, scored: ScoredEpisode, messages: frozenset[int]) -> ScoredEpisode:
        """Return the episode with the KL penalty only at the tokens at which it applies."""
        if self.config.kl_on == "all" or not scored.token_rewards:
            return scored
        kept = [
            np.where(np.isin(trace.turn, list(messages)), row, 0.0)
            for trace, row in zip(scored.episode.traces, scored.token_rewards, strict=True)
        ]
        return replace(scored, token_rewards=kept)

    def _rewards(self, scored: ScoredEpisode, trajectory: SeatTrajectory, changes: dict[int, float]) -> list[float]:
        """Return each turn's reward, with the speaking reward for what it changed in beliefs."""
        places = [scored.episode.turns[turn.index].move_index for turn in trajectory.turns]
        return [
            float(reward) + self.config.speaking_weight * (0.0 if place is None else changes.get(place, 0.0))
            for place, reward in zip(places, trajectory.rewards, strict=True)
        ]

    def _steps(self, scored: ScoredEpisode, turn: TurnTokens, reward: float, *, spoken: bool) -> _Steps:
        """Return the steps of a turn; what a message's reward has beside that of its tokens is on the last one."""
        values = turn.before(scored.values[HEAD])
        first = turn.prefixes.start
        if not spoken:
            return _Steps(slice(first, first + 1), np.array([reward]), values[:1], np.array([self.config.gamma]))
        rewards = turn.on(scored.token_rewards).copy() if scored.token_rewards else np.zeros(len(turn))
        rewards[-1] += reward - rewards.sum()
        return _Steps(turn.prefixes, rewards, values, np.ones(len(turn)))

    # --- text to be predicted ---

    def _predict(self, group: Sequence[ScoredEpisode], builders: Sequence[CreditBuilder]) -> None:
        """Write the weights of the right answers to probes and of observed tokens.

        The loss divides the sum of both by the number of all their tokens. Each weight is multiplied by that number and
        divided by that of its own, so that the loss is λ_L · mean per answer + λ_WM · mean per observed token.
        """
        pairs = list(zip(group, builders, strict=True))
        listening, observing = self.config.answers_weight, self.config.observations_weight
        answers = [
            (builder, answer.trace, answer.where)
            for scored, builder in pairs
            for answer in (probe_answers(scored.episode) if listening else ())
        ]
        observed = [
            (builder, tokens.trace, tokens.where)
            for scored, builder in pairs
            for row in (observed_tokens(scored.episode).values() if observing else ())
            for tokens in row
        ]
        read = sum(where.stop - where.start for _, _, where in observed)
        total = read + sum(where.stop - where.start for _, _, where in answers)
        for builder, trace, where in answers:
            builder.nll(trace, where, listening * total / len(answers))
        for builder, trace, where in observed:
            builder.nll(trace, where, observing * total / read)
