"""Who sits at a seat: the Player protocol and what a player answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from training.records import Observation, Probe, Scenario, Seat, Trace


@dataclass(frozen=True, slots=True)
class Reply:
    """A player's raw answer to one observation. `text` is as written, `<think>` and tags included.

    `tokens` are the sampled ids of a model player (empty otherwise); where they stand is in the player's trace.
    """

    text: str
    tokens: tuple[int, ...] = ()


class Player(Protocol):
    """One seat's mind during one episode. A player may keep state between its turns; one instance serves one seat."""

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Answer what was seen. Failures outside the model raise `OutsideError`."""

    def traces(self) -> tuple[Trace, ...]:
        """Return the token traces so far; empty for players without tokens.

        Turn indices are the seat's own 0, 1, …: the rollout maps them to `Episode.turns`.
        """


PlayerFactory = Callable[[Scenario, Seat], Player]
"""Makes a fresh player for one seat of one episode."""


@runtime_checkable
class Believer(Protocol):
    """A player that can say how likely it holds each answer to a question, without anything of it being remembered."""

    async def believe(self, observation: Observation, probe: Probe) -> Mapping[str, float] | None:
        """Return the probability of every choice, given what was seen; None where the question does not fit."""


@runtime_checkable
class Measured(Protocol):
    """A player that also counts things about its replies; an episode reports each as the mean over its attempts."""

    def totals(self) -> Mapping[str, float]:
        """Return sums over the player's replies so far."""
