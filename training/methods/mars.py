"""MARS: turn-level advantages in games of several turns, relative to the player's mean in the group, without a critic.

Source: "MARS: Reinforcing Multi-Agent Reasoning of LLMs through Self-Play in Strategic Games", §3.2. A turn's advantage
is its player's return-to-go minus a mean over the player's games of the group; the tokens of the turn share it.
`docs/methods/mars.md` lists the choices, and which forms are unbiased in which games.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from training.errors import BadInput
from training.methods.advantages import by_player, centred, returns_to_go
from training.methods.base import MethodConfig
from training.methods.credit_builder import CreditBuilder
from training.methods.trajectories import SeatTrajectory, seat_trajectories
from training.records import EpisodeCredit, Needs, ScoredEpisode

if TYPE_CHECKING:
    from training.records import Episode, Floats


class MarsConfig(MethodConfig):
    """How MARS turns the rewards of turns into credit."""

    summary: ClassVar[str] = "Self-play in strategic games; a turn is compared with the player's mean in the group."

    name: Literal["mars"] = Field(default="mars", description="The method: turn-level, player-relative advantages.")
    group: Literal["game", "start"] = Field(
        default="game",
        description="Which games are compared: all of the same game in a step, or all from the same start.",
    )
    turn_level: bool = Field(
        default=True,
        description="Each turn has its own return-to-go. Off (ablation): every turn has the whole game's reward.",
    )
    per_player: bool = Field(
        default=True, description="The mean is over the same player's games. Off (ablation): over all players'."
    )
    baseline: Literal["player", "player_turn", "role_ema", "none"] = Field(
        default="player",
        description="What is subtracted. player: the mean over all turns of the player. player_turn: over its turns of "
        "the same index. role_ema: a running mean of the player's rewards over past games (SPIRAL). none: "
        "nothing.",
    )
    normalise: Literal["after", "before"] = Field(
        default="after",
        description="after: the mean is subtracted from the sum of rewards. before (ablation): the mean reward of a "
        "turn is subtracted from each reward, and the differences are summed.",
    )
    ema_decay: float = Field(
        default=0.95, ge=0, lt=1, description="For role_ema: the share of the running mean that each game keeps."
    )

    @field_validator("baseline")
    @classmethod
    def _baseline_fits(cls, value: str, info: ValidationInfo) -> str:
        if value == "player_turn" and not info.data.get("turn_level", True):
            raise ValueError("without turn_level all turns of a game are one step: use player")
        if value == "role_ema" and not info.data.get("per_player", True):
            raise ValueError("the running mean is that of one player: set per_player")
        return value

    @field_validator("normalise")
    @classmethod
    def _order_fits(cls, value: str, info: ValidationInfo) -> str:
        if value == "before" and info.data.get("baseline") not in ("player", "player_turn"):
            raise ValueError("there is no mean of a turn's reward to subtract: use baseline player or player_turn")
        if value == "before" and not info.data.get("turn_level", True):
            raise ValueError("without turn_level there is only one reward, and the order makes no difference")
        return value

    def build(self) -> Mars:
        """Return the method at its start."""
        return Mars(self)

    def check(self, reward_low: float, replays: int) -> None:
        """Refuse a mean over the games of one start where each start is played once."""
        if self.group == "start" and self.baseline in ("player", "player_turn") and replays < 2:
            raise BadInput("a mean over the games of one start needs at least 2 of them (rollout.games)", "group")


@dataclass(frozen=True, slots=True)
class _Learner:
    """One trajectory of the group: its episode, and where its credit is written."""

    episode: Episode
    trajectory: SeatTrajectory
    builder: CreditBuilder

    @property
    def player(self) -> str:
        return self.episode.player(self.trajectory.seat)

    @property
    def rewards(self) -> Floats:
        return self.trajectory.rewards


class Mars:
    """The method. Its state is the running mean of each player's rewards, which only `role_ema` uses."""

    def __init__(self, config: MarsConfig) -> None:
        self.config = config
        self.needs = Needs(group=config.group)
        self._means: dict[str, float] = {}

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return credit on the sampled tokens of every learning seat: each turn's advantage on all of its tokens."""
        builders = [CreditBuilder(scored) for scored in group]
        learners = [
            _Learner(scored.episode, trajectory, builder)
            for scored, builder in zip(group, builders, strict=True)
            for trajectory in seat_trajectories(scored, scored.returns)
        ]
        for learner, advantages in zip(learners, self._advantages(learners), strict=True):
            for turn, advantage in zip(learner.trajectory.turns, advantages, strict=True):
                learner.builder.ppo(turn.trace, turn.sampled, float(advantage))
                learner.builder.turn(turn.trace, turn.index, float(advantage))
        return [builder.credit() for builder in builders]

    def state_dict(self) -> dict[str, Any]:
        """Return the running mean of each player's rewards."""
        return {"means": dict(self._means)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the running means."""
        self._means = {player: float(mean) for player, mean in state["means"].items()}

    def _advantages(self, learners: Sequence[_Learner]) -> list[Floats]:
        """Return the advantages of each trajectory's turns."""
        config = self.config
        if config.baseline == "role_ema":
            baselines = self._running(learners)
            return [self._to_go(each) - mean for each, mean in zip(learners, baselines, strict=True)]
        players = [each.player if config.per_player else each.episode.scenario.game for each in learners]
        rewards = [each.rewards if config.turn_level else each.rewards.sum(keepdims=True) for each in learners]
        if config.normalise == "before":
            by_turn = config.baseline == "player_turn"
            advantages = [returns_to_go(row) for row in centred(rewards, players, by_turn=by_turn)]
        else:
            advantages = [np.array(row) for row in by_player(rewards, players, config.baseline)]
        return [
            np.broadcast_to(row, len(each.rewards)) if len(row) == 1 else row
            for row, each in zip(advantages, learners, strict=True)
        ]

    def _to_go(self, learner: _Learner) -> Floats:
        return (
            returns_to_go(learner.rewards)
            if self.config.turn_level
            else np.full_like(learner.rewards, learner.rewards.sum())
        )

    def _running(self, learners: Sequence[_Learner]) -> list[float]:
        """Return each trajectory's baseline, the player's running mean before the group, and update the means.

        A player seen for the first time starts at the mean of the group.
        """
        totals: dict[str, list[float]] = {}
        for each in learners:
            totals.setdefault(each.player, []).append(float(each.rewards.sum()))
        before = {player: self._means.get(player, float(np.mean(rewards))) for player, rewards in totals.items()}
        for player, rewards in totals.items():
            mean = before[player]
            for reward in rewards:
                mean = self.config.ema_decay * mean + (1 - self.config.ema_decay) * reward
            self._means[player] = mean
        return [before[each.player] for each in learners]
