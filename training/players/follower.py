"""`follower:N`: a speaker that follows N % of the strategies that name a legal move, and else moves at random.

What a strategist is worth to it is known: nothing at 0, and at 100 as much as its moves.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.errors import BadInput, IllegalMove
from training.games.actions import clean, read_args, write
from training.players.advised import advice
from training.players.base import Reply
from training.players.random import RandomPlayer
from training.records import Action, Observation, Scenario, Seat, Trace
from training.seeding import derive, rng
from training.text.parsing import parse


def named_move(strategy: str, actions: Sequence[Action]) -> str:
    """Return the reply that makes the move which a strategy names, empty if it names none.

    A strategy names a move by the name of an offered action with its arguments, as `propose food 2, water 1`.
    """
    text = clean(strategy)
    for action in sorted(actions, key=lambda action: -len(action.name)):
        name = action.name.replace("_", " ")
        if not text.lower().startswith(name):
            continue
        rest = text[len(name) :].lstrip(" :")
        try:
            return write(
                action,
                read_args(action, rest) if action.args else {},
                "" if action.args or action.text == "none" else rest,
            )
        except (IllegalMove, ValueError):
            continue
    return ""


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
        strategy, own = advice(observation)
        move = named_move(strategy, own.actions)
        if move and rng(seed, "follow").random() * 100 < self._percent and _legal(move, own):
            return Reply(move)
        return await self._random.act(seat, own, derive(seed, "own"))

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()


def make(scenario: Scenario, seat: Seat, percent: int) -> Follower:
    """Return a follower of `percent` % of the strategies; raise `BadInput` for more than 100."""
    if percent > 100:
        raise BadInput(f"nobody follows {percent} % of the strategies: at most 100", "players")
    return Follower(percent)
