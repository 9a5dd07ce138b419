"""Scripted players: code that plays a game sensibly without a model, deterministic by seed.

`GameSpec.script` names each game's script; this module has their factory and their base class.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from random import Random

from training.errors import BadInput
from training.games import REGISTRY, lookup
from training.games.actions import plain, write
from training.players.base import Player, Reply
from training.records import Action, ArgValue, Observation, Scenario, Seat, Trace
from training.seeding import rng


class Script(ABC):
    """One seat of one episode. It uses only the parts of the scenario that its seat may know."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        self.seat = seat
        self.names = scenario.seats

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return a reply to the observation; the same observation and seed give the same reply."""
        if not observation.actions:
            raise BadInput("a player was asked for a move, and no action is possible", f"seat {seat}")
        return Reply(self.answer(observation, rng(seed, "scripted")))

    def traces(self) -> tuple[Trace, ...]:
        """Return no traces: a script samples no tokens."""
        return ()

    @abstractmethod
    def answer(self, observation: Observation, chance: Random) -> str:
        """Return the reply; `chance` only varies the wording."""


def offered(observation: Observation, name: str) -> Action | None:
    """Return the action called `name`, or None if it is not offered."""
    return next((action for action in observation.actions if action.name == name), None)


def do(observation: Observation, name: str, speech: str = "", **args: ArgValue) -> str:
    """Return the reply that performs an offered action with some speech, shortened to the allowed length."""
    action = offered(observation, name)
    assert action is not None, f"{name} is not offered"
    free = {arg.name for arg in action.args if arg.kind == "text"}
    limit = observation.max_chars or sys.maxsize
    args = {key: shorten(str(value), limit) if key in free else value for key, value in args.items()}
    room = limit - sum(len(str(args[key])) for key in free)
    spoken = " ".join(plain(speech).split()[: observation.max_words or None])
    return write(action, args, "" if action.text == "none" or room < 4 else shorten(spoken, room))


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters, cut between words."""
    if len(text) <= limit:
        return text
    return text[: limit + 1].rsplit(" ", 1)[0][:limit]


def pick(chance: Random, lines: Sequence[str]) -> str:
    """Return one of several wordings."""
    return lines[chance.randrange(len(lines))]


def make(scenario: Scenario, seat: Seat) -> Player:
    """Return the scripted player of the scenario's game; raise `BadInput` for a game without one."""
    module, _, name = lookup(scenario.game).script.partition(":")
    if not module:
        scripted = sorted(spec.name for spec in REGISTRY.values() if spec.script)
        raise BadInput(f"no script plays {scenario.game!r}; there is one for: {', '.join(scripted)}", "players")
    player: Player = getattr(import_module(module), name)(scenario, seat)
    return player
