"""`follower:N`: a speaker that follows N % of the strategies that name a legal move, and else moves at random.

What a strategist is worth to it is known: nothing at 0, and at 100 as much as its moves.
"""

from __future__ import annotations

from training.errors import BadInput, IllegalMove
from training.players.base import Reply
from training.players.random import RandomPlayer
from training.records import Observation, Scenario, Seat, Trace
from training.seeding import derive, rng
from training.text.parsing import parse
from training.text.strategies import advice, named_move


def _legal(reply: str, observation: Observation) -> bool:
    try:
        parse(reply, observation)
    except IllegalMove:
        return False
    return True


class Follower:
    """One seat of one episode."""

    def __init__(self, percent: int) -> None:
        self._percent = percent
        self._random = RandomPlayer()

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return the move that the newest strategy names, if it follows it, or a random one."""
        strategy, game_observation = advice(observation)
        move = named_move(strategy, game_observation.actions)
        if move and rng(seed, "follow").random() * 100 < self._percent and _legal(move, game_observation):
            return Reply(move)
        return await self._random.act(seat, game_observation, derive(seed, "own"))

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()


def make(scenario: Scenario, seat: Seat, percent: int) -> Follower:
    """Return a follower of `percent` % of the strategies; raise `BadInput` for more than 100."""
    if percent > 100:
        raise BadInput(f"nobody follows {percent} % of the strategies: at most 100", "players")
    return Follower(percent)
