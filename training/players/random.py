"""A player that chooses uniformly among its legal actions, with random legal arguments; it reads no messages."""

from __future__ import annotations

from random import Random

from training.errors import BadInput
from training.games.actions import write
from training.players.base import Reply
from training.records import Argument, ArgValue, Observation, Scenario, Seat, Trace
from training.seeding import rng

TEXT = (
    "well maybe we could talk about this some more I think that is fair what would you say if both of us gave a little "
    "today perhaps not now but later it depends on how you see it and whether there is time for another idea"
)
WORDS = tuple(TEXT.split())


class RandomPlayer:
    """Plays random legal moves; the same seed gives the same reply."""

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Answer with a random legal action; raise `BadInput` where none is offered."""
        if not observation.actions:
            raise BadInput("a player was asked for a move, and no action is possible", f"seat {seat}")
        chance = rng(seed, "random")
        listed = [action for action in observation.actions if all(map(_valued, action.args))]
        action = chance.choice(listed)
        args = {arg.name: _value(arg, chance, observation) for arg in action.args}
        speech = _words(chance, observation) if action.text == "required" else ""
        return Reply(write(action, args, speech))

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()


def _valued(arg: Argument) -> bool:
    """Return whether some value is known to be legal and to work."""
    return arg.kind != "choice" or bool(arg.choices)


def _value(arg: Argument, chance: Random, observation: Observation) -> ArgValue:
    if arg.kind == "integer":
        return chance.randint(arg.low, arg.high)
    return chance.choice(arg.choices) if arg.kind == "choice" else _words(chance, observation)


def _words(chance: Random, observation: Observation) -> str:
    count = min(chance.randint(3, 10), observation.max_words or 10)
    return " ".join(chance.choices(WORDS, k=count))[: observation.max_chars or 200].strip()


def make(scenario: Scenario, seat: Seat) -> RandomPlayer:
    """Return a random player; every game has one."""
    return RandomPlayer()
