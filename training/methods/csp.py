"""CSP: reinforced self-training on the best episode of the action sequence that does best on average.

Source: "Don't lie to your friends: Learning what you know from collaborative self-play", algorithm 1. Episodes of one
start are grouped by their actions, and the groups compared by their mean reward: no lucky guess is imitated. The
loss imitates the learner's turns in the best episode of the best group. The form `action_supervision` is the paper's
baseline without communication. `docs/methods/csp.md` lists the choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from training.errors import BadInput
from training.methods.base import MethodConfig
from training.methods.credit_builder import CreditBuilder
from training.methods.trajectories import turn_tokens
from training.records import Episode, EpisodeCredit, Needs, ScoredEpisode

ANSWER, HEDGE = "answer", "hedge"
"""The actions that end a game of a single agent, by which `action_supervision` tells its episodes apart."""
Actions = tuple[tuple[int, str], ...]
"""The seat and the action of every move, without its arguments."""


class CspConfig(MethodConfig):
    """How CSP chooses the episodes that it imitates."""

    summary: ClassVar[str] = "Agents imitate the best episode of the action sequence that does best on average."

    name: Literal["csp"] = Field(default="csp", description="The method: reinforced self-training (ReST).")
    form: Literal["sequences", "action_supervision"] = Field(
        default="sequences",
        description="sequences: the best episode of the action sequence that does best on average. action_supervision: "
        "a baseline in which each agent plays alone; its best answer where that is good, else the actions of its best "
        "hedge without the text.",
    )
    support: int = Field(
        default=2,
        ge=1,
        le=256,
        description="sequences: fewest episodes of an action sequence whose mean reward counts.",
    )
    threshold: float = Field(
        default=0.0,
        ge=-1e6,
        le=1e6,
        description="sequences: nothing is imitated where the best mean reward is not above this.",
    )
    sure: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="action_supervision: the F1 above which the best answer is imitated.",
    )

    def build(self) -> Csp | ActionSupervision:
        """Return the method at its start."""
        return ActionSupervision(self) if self.form == "action_supervision" else Csp(self)

    def check(self, reward_low: float, replays: int) -> None:
        """Refuse fewer episodes of a start than an action sequence must have."""
        if self.form == "sequences" and replays < self.support:
            why = f"a start is played {replays} times (rollout.games), so no action sequence can occur so often"
            raise BadInput(why, "support")


def action_sequence(episode: Episode) -> Actions:
    """Return who did what in an episode, without the moves of tools. A move that nobody chose has its origin's name."""
    players = len(episode.scenario.seats)
    moves = ((entry.seat, entry.move) for entry in episode.moves if entry.seat < players)
    return tuple((seat, move.action if move.origin == "seat" else move.origin) for seat, move in moves)


def best_sequence(sequences: Sequence[Actions], rewards: Sequence[float], support: int) -> tuple[Actions, float] | None:
    """Return the action sequence of the highest mean reward with that mean, among those that occur `support` times.

    Of equal ones it is the one that occurs more often, then the shorter one. None if no sequence occurs so often.
    """
    rows: dict[Actions, list[float]] = {}
    for sequence, reward in zip(sequences, rewards, strict=True):
        rows.setdefault(sequence, []).append(reward)
    enough = {sequence: row for sequence, row in rows.items() if len(row) >= support}
    if not enough:
        return None
    best = min(enough, key=lambda each: (-float(np.mean(enough[each])), -len(enough[each]), len(each), each))
    return best, float(np.mean(enough[best]))


class Csp:
    """The method: the best episode of the action sequence that does best on average. It has no state."""

    def __init__(self, config: CspConfig) -> None:
        self.config = config
        self.needs = Needs(group="start", imitates=True)

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return a weight of 1 on the learner's tokens of the chosen episode, and nothing on the others'."""
        builders = [CreditBuilder(scored) for scored in group]
        chosen = self._chosen(group)
        if chosen is not None:
            _imitate(builders[chosen], group[chosen])
        return [builder.credit() for builder in builders]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing."""

    def _chosen(self, group: Sequence[ScoredEpisode]) -> int | None:
        """Return which episode of a start is imitated: the best of its sequence, the first of equal ones."""
        sequences = [action_sequence(scored.episode) for scored in group]
        rewards = [_reward(scored) for scored in group]
        best = best_sequence(sequences, rewards, self.config.support)
        if best is None or best[1] <= self.config.threshold:
            return None
        return max(
            (at for at, sequence in enumerate(sequences) if sequence == best[0]), key=lambda at: (rewards[at], -at)
        )


class ActionSupervision:
    """A baseline: each agent imitates its best answer where that is good, else the actions of its best hedge.

    Agents play alone, so that a group holds the episodes of one question with one tool. It has no state.
    """

    def __init__(self, config: CspConfig) -> None:
        self.config = config
        self.needs = Needs(group="start", imitates=True, alone=True, arguments=True)

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return a weight of 1 on the learner's tokens of the chosen episode; of a hedge, not on those of its text."""
        builders = [CreditBuilder(scored) for scored in group]
        answer, hedge = (_best(group, action) for action in (ANSWER, HEDGE))
        if answer is not None and _f1(group[answer]) > self.config.sure:
            _imitate(builders[answer], group[answer])
        elif hedge is not None:
            _imitate(builders[hedge], group[hedge], silent=True)
        return [builder.credit() for builder in builders]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing."""


def _best(group: Sequence[ScoredEpisode], action: str) -> int | None:
    """Return which episode has the highest reward of those that end with an action, the first of equal ones."""
    ending = [at for at, scored in enumerate(group) if action_sequence(scored.episode)[-1:] == ((0, action),)]
    return max(ending, key=lambda at: (_reward(group[at]), -at), default=None)


def _f1(scored: ScoredEpisode) -> float:
    """Return the F1 of an episode's final answer; its reward in a game that does not measure it."""
    return scored.episode.metrics.get("f1", _reward(scored))


def _imitate(builder: CreditBuilder, scored: ScoredEpisode, *, silent: bool = False) -> None:
    """Write a weight of 1 on the tokens of the learner's accepted replies, `silent`: on those that are no arguments."""
    episode = scored.episode
    for turn in (turn for turns in turn_tokens(episode).values() for turn in turns):
        if episode.turns[turn.index].passed:
            builder.nll(turn.trace, turn.sampled, 1.0)
            if silent:
                for at in np.flatnonzero(scored.arguments[turn.trace][turn.sampled]) + turn.first:
                    builder.nll(turn.trace, slice(at, at + 1), 0.0)


def _reward(scored: ScoredEpisode) -> float:
    """Return the mean reward of an episode's seats, which share it in a cooperative game."""
    return (sum(scored.returns.values()) + sum(scored.turn_rewards)) / len(scored.returns)
