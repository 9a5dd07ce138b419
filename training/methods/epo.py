"""EPO: REINFORCE on the strategies of a strategist, which advises a frozen speaker.

Source: "EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via Reinforcement Learning", eq. 4. A
strategy's advantage is its discounted return, relative to the largest of its game, and all of its tokens share it.
`docs/methods/epo.md` lists the choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from training.methods.advantages import centred, gae, reinforce_returns
from training.methods.base import MethodConfig
from training.methods.credit_builder import CreditBuilder
from training.methods.trajectories import SeatTrajectory, seat_trajectories
from training.records import EpisodeCredit, Needs, ScoredEpisode

if TYPE_CHECKING:
    from training.records import Episode, Floats


class EpoConfig(MethodConfig):
    """How EPO turns the rewards of strategies into credit."""

    summary: ClassVar[str] = "A strategist advises a frozen speaker; REINFORCE on its strategies, by process rewards."

    name: Literal["epo"] = Field(default="epo", description="The method: REINFORCE on strategies.")
    form: Literal["reinforce", "sft"] = Field(
        default="reinforce",
        description="reinforce = strategies count by their returns. sft = each counts the same, whatever followed it: "
        "supervised learning, on the strategies of a teacher.",
    )
    threshold: float | None = Field(
        default=None,
        ge=-1e6,
        le=1e6,
        description="Only the strategies of seats with a reward above this at the end are learned, such as a teacher's "
        "good games. Empty = all.",
    )
    gamma: float = Field(default=0.99, gt=0, le=1, description="Discount of what follows a strategy, by turn.")
    result: bool = Field(
        default=True,
        description="Whether the seat's result counts, at its last strategy. Off: the rewards of turns alone, such as "
        "process rewards (reward.process).",
    )
    baseline: Literal["max", "batch", "role"] = Field(
        default="max",
        description="max: returns are divided by the largest absolute one of their game, so that no advantage is "
        "negative where no reward is. batch: the mean over all strategies of the step's games is subtracted. role: the "
        "mean over the strategies of the same role, or seat.",
    )

    def build(self) -> Epo:
        """Return the method at its start."""
        return Epo(self)


class Epo:
    """The method; it has no state."""

    def __init__(self, config: EpoConfig) -> None:
        self.config = config
        positive = config.baseline == "max" or config.form == "sft"  # by design most advantages are then above 0
        self.needs = Needs(group="game", offline=True, taught=config.form == "sft", centred=not positive)

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return credit on the tokens of every learning seat's strategies: for all of one, its advantage."""
        builders = [CreditBuilder(scored) for scored in group]
        learners = [
            (scored.episode, trajectory, builder)
            for scored, builder in zip(group, builders, strict=True)
            for trajectory in seat_trajectories(scored, self._results(scored))
            if self.config.threshold is None or scored.returns[trajectory.seat] > self.config.threshold
        ]
        advantages = self._advantages([(episode, trajectory) for episode, trajectory, _ in learners])
        for (_, trajectory, builder), row in zip(learners, advantages, strict=True):
            for turn, advantage in zip(trajectory.turns, row, strict=True):
                builder.reinforce(turn.trace, turn.sampled, float(advantage))
                builder.turn(turn.trace, turn.index, float(advantage))
        return [builder.credit() for builder in builders]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing."""

    def _results(self, scored: ScoredEpisode) -> dict[int, float]:
        """Return what each seat receives at its last turn."""
        return {seat: value if self.config.result else 0.0 for seat, value in scored.returns.items()}

    def _advantages(self, learners: Sequence[tuple[Episode, SeatTrajectory]]) -> list[Floats]:
        """Return the advantages of each trajectory's turns."""
        gamma, rewards = self.config.gamma, [trajectory.rewards for _, trajectory in learners]
        if self.config.form == "sft":
            return [np.ones(len(row)) for row in rewards]
        if self.config.baseline == "max":
            return [np.asarray(reinforce_returns(row.tolist(), gamma), dtype=np.float64) for row in rewards]
        to_go = [gae(row, np.zeros(len(row)), gamma, 1.0) for row in rewards]  # without values: discounted returns
        by_role = self.config.baseline == "role"
        return centred(to_go, [_role(*learner) if by_role else "" for learner in learners])


def _role(episode: Episode, trajectory: SeatTrajectory) -> str:
    """Return the role of a trajectory's seat, or the seat where the game has no roles."""
    return episode.roles[trajectory.seat] if episode.roles else episode.player(trajectory.seat)
