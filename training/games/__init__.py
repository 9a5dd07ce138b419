"""The registry of games, and the fold `replay(scenario, moves)`, from which all packages compute a game's state."""

from __future__ import annotations

from collections.abc import Iterable

from training.errors import BadInput, IllegalMove
from training.games.among_us import SPEC as AMONG_US
from training.games.base import CheckedStatement, ClaimCheckingGame, Game, GameSpec, Search, SearchingGame
from training.games.dialogue import SPEC as DIALOGUE
from training.games.household import SPEC as HOUSEHOLD
from training.games.negotiation import SPEC as NEGOTIATION
from training.games.openspiel import PREFIX, SPECS, generic
from training.games.qa_society import SPEC as QA_SOCIETY
from training.games.shop import SPEC as SHOP
from training.games.werewolf import SPEC as WEREWOLF
from training.plugins import Registry
from training.records import Move, Scenario, Seat, SeatMove


def _check(name: str, loaded: object) -> GameSpec:
    if not isinstance(loaded, GameSpec):
        raise BadInput(f"is no GameSpec but {type(loaded).__name__}")
    if loaded.name != name:
        raise BadInput(f"its GameSpec is called {loaded.name!r}")
    return loaded


REGISTRY: Registry[GameSpec] = Registry(
    "parley.games",
    {spec.name: spec for spec in (NEGOTIATION, DIALOGUE, *SPECS, WEREWOLF, AMONG_US, QA_SOCIETY, SHOP, HOUSEHOLD)},
    _check,
)
"""All games by name: Parley's own, then those of installed plugins."""

__all__ = [
    "REGISTRY",
    "CheckedStatement",
    "ClaimCheckingGame",
    "Game",
    "GameSpec",
    "Search",
    "SearchingGame",
    "anonymised",
    "lookup",
    "make",
    "redrawn",
    "replay",
]


def lookup(name: str) -> GameSpec:
    """Return the declaration of a game; raise `BadInput` for an unknown one.

    `openspiel:NAME` is any other game of OpenSpiel that can be played; such games are not in the registry.
    """
    if name.startswith(PREFIX):
        return generic(name)
    if name not in REGISTRY:
        REGISTRY.refuse(
            name, f"unknown game {name[:80]!r}; known: {', '.join(sorted(REGISTRY))}, openspiel:NAME", "game"
        )
    return REGISTRY[name]


def make(scenario: Scenario) -> Game:
    """Return the game at its start; raise `BadInput` for an unknown game or wrong settings."""
    spec = lookup(scenario.game)
    low, high = spec.players
    if not low <= len(scenario.seats) <= high:
        raise BadInput(f"{scenario.game} needs {low} to {high} players, not {len(scenario.seats)}", "seats")
    return spec.make(scenario)


def redrawn(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario with all chance drawn from `seed`, including outcomes that its settings state."""
    settings = lookup(scenario.game).undealt(scenario.settings)
    return scenario.model_copy(update={"settings": settings, "seed": seed})


def anonymised(scenario: Scenario) -> Scenario:
    """Return the scenario as a new game is played from it: without names that the seats must not read.

    Recorded games keep the names under which they were played. Raises `BadInput` for wrong settings.
    """
    return lookup(scenario.game).anonymised(scenario)


def replay(scenario: Scenario, moves: Iterable[SeatMove]) -> Game:
    """Return the game after `moves`, in the order received; an incomplete last joint step is ignored.

    A joint step is complete when every seat of `to_act` has one move. Raises `IllegalMove` for a move by a seat that
    was not to act, a second move of a seat within one step, or an illegal move.
    """
    game = make(scenario)
    pending: dict[Seat, Move] = {}
    for entry in moves:
        pending = advance(game, pending, entry)
    return game


def advance(game: Game, pending: dict[Seat, Move], entry: SeatMove) -> dict[Seat, Move]:
    """Add one move to the joint step being collected; step the game when it is complete. Return what is pending."""
    expected = game.to_act()
    if entry.seat not in expected or entry.seat in pending:
        raise IllegalMove(f"seat {entry.seat} is not to act")
    collected = {**pending, entry.seat: entry.move}
    if len(collected) < len(expected):
        return collected
    game.step(dict(sorted(collected.items())))
    return {}
