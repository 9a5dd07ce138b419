"""Players: model, random, scripted and solving. Players without a model are created by name.

`make` raises `BadInput` for an unknown name, or a game that the player does not play.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from training.errors import BadInput
from training.players.base import Player
from training.plugins import Registry
from training.records import Scenario, Seat

Factory = Callable[..., Player]


@dataclass(frozen=True, slots=True)
class _Named:
    """A factory `module:function` that is imported on first use; `reads_strategies` as in `NAMES`."""

    target: str
    reads_strategies: bool = False

    def __call__(self, scenario: Scenario, seat: Seat, *number: int) -> Player:
        module, _, function = self.target.partition(":")
        player: Player = getattr(import_module(module), function)(scenario, seat, *number)
        return player


def _check(name: str, loaded: Any) -> Factory:
    if not callable(loaded):
        raise BadInput(f"is no function of (scenario, seat) but {type(loaded).__name__}")
    factory: Factory = loaded
    return factory


NAMES: Registry[Factory] = Registry(
    "parley.players",
    {
        "scripted": _Named("training.players.scripted:make"),
        "random": _Named("training.players.random:make"),
        "mcts:N": _Named("training.players.search:mcts"),
        "nash": _Named("training.players.table:nash"),
        "cfr": _Named("training.players.table:cfr"),
        "follower:N": _Named("training.players.follower:make", reads_strategies=True),
    },
    _check,
)
"""Each player's factory, `make(scenario, seat) -> Player`; players of installed plugins follow Parley's own.

N in a name stands for a number that is passed to the factory: `mcts:100` searches with 100 simulations per move. A
factory whose attribute `reads_strategies` is true makes speakers; a `follower` moves at random without a strategist.
"""
MOST = 100_000
"""Largest number in a name."""

__all__ = ["NAMES", "Player", "check", "facts", "known", "make", "reads_strategies", "speakers"]


def _find(name: str) -> tuple[str, tuple[int, ...]] | None:
    """Return (key in `NAMES`, number in the name if any), or None if there is no such player."""
    base, colon, number = name.partition(":")
    if not colon:
        return (name, ()) if name in NAMES else None
    if f"{base}:N" not in NAMES or not (number.isascii() and number.isdigit() and len(number) <= len(str(MOST))):
        return None
    return (f"{base}:N", (int(number),)) if 1 <= int(number) <= MOST else None


def known(name: str) -> bool:
    """Return whether `name` is a player without a model."""
    return _find(name) is not None


def make(name: str, scenario: Scenario, seat: Seat) -> Player:
    """Return a new player called `name` for one seat of one episode."""
    entry = _find(name)
    if entry is None:
        problem = f"unknown player {name!r}; known: {', '.join(sorted(NAMES))} (N: 1 to {MOST})"
        NAMES.refuse(name, problem, "players")
    key, number = entry
    return NAMES[key](scenario, seat, *number)


def check(name: str, start: Scenario) -> None:
    """Raise `BadInput` unless the player called `name` plays the game of `start`; this solves no game."""
    from training.players.table import SOLVED, check_game

    if name in SOLVED:
        check_game(name, start.game)
    else:
        make(name, start, 0)


def speakers() -> list[str]:
    """Return the names of players without a model that read strategies, and so can be speakers."""
    return sorted(name for name, factory in NAMES.items() if _reads_strategies(factory))


def reads_strategies(name: str) -> bool:
    """Return whether a player without a model can be a speaker; False for a name that is no player's."""
    entry = _find(name)
    return entry is not None and _reads_strategies(NAMES[entry[0]])


def _reads_strategies(factory: Factory) -> bool:
    return bool(getattr(factory, "reads_strategies", False))


def facts(name: str) -> dict[str, Any]:
    """Return the facts about a player without a model that results report."""
    if name != "cfr":
        return {"kind": name}
    from training.players.table import leduc

    return {"kind": name, "exploitability": leduc().exploitability}
