"""Who sits where: the learner on every seat, or the learner against opponents drawn from a weighted pool.

Raises `BadInput` for weights that are not positive numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from training.errors import BadInput
from training.players.base import Player
from training.records import LEARNER, Scenario, Seat
from training.seeding import rng

PlayerFactory = Callable[[Scenario, Seat], Player]
"""Makes a fresh player for one seat of one episode."""


@dataclass(frozen=True, slots=True)
class OpponentPool:
    """Which policy each seat plays, by name; `weights` are the opponents', empty = self-play on every seat.

    With opponents the learner has one seat: seat `episode mod n`, so that it comes to every seat equally often. The
    others are drawn, each anew, from the weights by a generator of the episode's own.
    """

    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            if not (weight > 0 and math.isfinite(weight)):
                raise BadInput(f"the weight of {name} must be a positive number, not {weight}", "opponents")

    def seat(self, scenario: Scenario, episode: int, seed: int) -> tuple[str, ...]:
        """Return the policy of every player's seat."""
        seats = len(scenario.seats)
        if not self.weights:
            return (LEARNER,) * seats
        names = sorted(self.weights)
        drawn = rng(seed, "opponents", episode).choices(names, [self.weights[name] for name in names], k=seats)
        drawn[episode % seats] = LEARNER
        return tuple(drawn)
