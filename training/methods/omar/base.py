"""What the forms of OMAR share: rewards of the seats, whitening, the order of the steps. A form adds two methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from training.methods.advantages import UNCHANGED, Whitening, whitening
from training.methods.credit_builder import CreditBuilder
from training.methods.trajectories import SeatTrajectory, eliminated, seat_trajectories
from training.records import EpisodeCredit, Needs, ScoredEpisode, Seat

if TYPE_CHECKING:
    from training.methods.omar.config import OmarConfig
    from training.records import Floats

TURN, TOKEN, SHARED = "turn", "token", "shared"
"""The names of the value heads: one that is read at turns, one at tokens, or one for both."""


@dataclass(frozen=True, slots=True)
class LearningSeat:
    """One seat that receives credit: its episode (also by its index in the group), its turns, where credit is written.

    A seat of several traces (branches) is one learning seat.
    """

    index: int
    scored: ScoredEpisode
    trajectory: SeatTrajectory
    builder: CreditBuilder

    def token_values(self, head: str) -> list[Floats]:
        """Return, for each turn, what the head predicts before each of its tokens."""
        return [turn.before(self.scored.values[head]) for turn in self.trajectory.turns]

    def token_rewards(self) -> list[Floats] | None:
        """Return, for each turn, what was paid at its tokens; None if nothing is ever paid there."""
        if not self.scored.token_rewards:
            return None
        return [turn.on(self.scored.token_rewards) for turn in self.trajectory.turns]


class Omar(ABC):
    """Base of the forms. A form says how a seat's rewards become advantages and how these are written on tokens.

    `heads` are the value heads that the form reads. A form keeps nothing from one step to the next.
    """

    def __init__(self, config: OmarConfig, heads: tuple[str, ...] = ()) -> None:
        self.config = config
        self.needs = Needs(critic=tuple(dict.fromkeys(heads)), group="game" if config.whiten else self.group())

    @abstractmethod
    def advantages(self, seats: Sequence[LearningSeat], group: Sequence[ScoredEpisode]) -> list[Floats]:
        """Return the advantages of each seat, one entry per step of the form (a turn or a token), unwhitened."""

    @abstractmethod
    def write(self, seat: LearningSeat, advantages: Floats, whitened: Whitening) -> None:
        """Write the seat's advantages on its tokens, whitened and filtered, and the targets of the value heads."""

    def group(self) -> Literal["conversation", "start"]:
        """Return which episodes one call of `credit` must see together for the advantages alone."""
        return "conversation"

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return credit on the sampled tokens of every learning seat, and targets for the value heads."""
        builders = [CreditBuilder(scored) for scored in group]
        seats = [
            LearningSeat(index, scored, trajectory, builders[index])
            for index, scored in enumerate(group)
            for trajectory in seat_trajectories(scored, self.results(scored))
        ]
        advantages = self.advantages(seats, group)
        whitened = whitening(advantages) if self.config.whiten else UNCHANGED
        for seat, steps in zip(seats, advantages, strict=True):
            self.write(seat, steps, whitened)
        return [builder.credit() for builder in builders]

    def results(self, scored: ScoredEpisode) -> dict[Seat, float]:
        """Return each seat's reward for the whole episode; a seat that was eliminated early keeps a share of a gain.

        A loss is not made smaller, or being eliminated would pay.
        """
        share = self.config.elimination_discount
        return {
            seat: reward * share if reward > 0 and eliminated(scored.episode, seat) else reward
            for seat, reward in scored.returns.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: there is no state."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Accept the empty state."""
        if state:
            raise ValueError("omar keeps no state")
