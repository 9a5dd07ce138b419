"""Whether a game ever has moves that can be listed, determined by random games."""

from __future__ import annotations

import asyncio

from training import players
from training.players.base import Player, Reply
from training.records import Observation, Scenario, Seat, Trace
from training.rollout.episode import play
from training.text.choices import MOST, count

GAMES = 3


class _Noting:
    """Plays at random, and notes whether its moves could be listed."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.listed = False

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        self.listed |= 0 < count(observation.actions) <= MOST
        return await self._player.act(seat, observation, seed)

    def traces(self) -> tuple[Trace, ...]:
        return ()


def lists_moves(scenario: Scenario) -> bool:
    """Return whether some seat's moves could be listed in one of a few random games from a scenario."""
    for seed in range(1, GAMES + 1):
        noting = [_Noting(players.make("random", scenario, seat)) for seat in range(len(scenario.seats))]
        asyncio.run(play(scenario.with_seed(scenario.seed or seed), noting))
        if any(player.listed for player in noting):
            return True
    return False
