"""The Player protocol, and the replies of players."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from training.records import LEARNER, Observation, Probe, Scenario, Seat, Trace


@dataclass(frozen=True, slots=True)
class Reply:
    """A player's raw answer to one observation. `text` is unmodified, with `<think>` and tags.

    `tokens` are the sampled ids of a model player, empty for others; the player's trace has their positions. `strategy`
    is what the seat's strategist wrote before the reply; empty without one.
    """

    text: str
    tokens: tuple[int, ...] = ()
    strategy: str = ""


class Player(Protocol):
    """The player of one seat during one episode. It may keep state between turns; each seat has its own instance."""

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return a reply to the observation. Failures outside the model raise `OutsideError`."""

    def traces(self) -> tuple[Trace, ...]:
        """Return the token traces so far; empty for players without tokens.

        Turn indices count the seat's turns (0, 1, …); the rollout maps them to `Episode.turns`.
        """


@dataclass(frozen=True, slots=True)
class Answer:
    """A player's answer to a probe: the probability of every choice.

    `tokens` are what the player's model read, the question included, and the right choice as its reply, which begins at
    `reply`; of several right choices it is the likeliest. They are empty if no choice is right. `policy` is the name of
    the policy in the player's traces.
    """

    probabilities: Mapping[str, float]
    tokens: tuple[int, ...] = ()
    reply: int = 0
    policy: str = LEARNER


PlayerFactory = Callable[[Scenario, Seat], Player]
"""Creates a new player for one seat of one episode."""


@runtime_checkable
class Believer(Protocol):
    """A player that can report a probability for each answer to a question; the question leaves its state unchanged."""

    async def believe(self, observation: Observation, probe: Probe) -> Answer | None:
        """Return the answer given the observation; None if the question does not fit the window."""


@runtime_checkable
class Measured(Protocol):
    """A player that also measures its replies; an episode reports the mean over all such replies."""

    def totals(self) -> Mapping[str, float]:
        """Return sums over the player's replies so far."""
