"""The parts of every game's cases."""

from collections.abc import Callable
from dataclasses import dataclass

from training.games import Game
from training.records import Move, Scenario

NAMES = ("Ada", "Ben")


@dataclass(frozen=True)
class Worlds:
    """Two scenarios that differ only in what `viewer` may not know.

    `until(a)`: whether the rules have brought it to light by now. `across(a, b, moves)`: the joint step of b that looks
    to the viewer like `moves` of a; the same one, unless hidden roles move by themselves.
    """

    name: str
    viewer: int
    a: Scenario
    b: Scenario
    until: Callable[[Game], bool] = lambda a: False
    across: Callable[[Game, Game, dict[int, Move]], dict[int, Move]] = lambda a, b, moves: moves


@dataclass(frozen=True)
class Secret:
    """A canary in a scenario, and the viewers whose output may contain it."""

    scenario: Scenario
    text: str
    readers: frozenset[int]
