"""Who can sit at a seat: model, random, scripted and solving players. Players that need no model are made by name.

`make` raises `BadInput` for an unknown name, or a game that the player does not play.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from training.errors import BadInput
from training.players.base import Player
from training.records import Scenario, Seat

NAMES: dict[str, str] = {
    "scripted": "training.players.scripted:make",
    "random": "training.players.random:make",
    "mcts:N": "training.players.search:mcts",
    "nash": "training.players.table:nash",
    "cfr": "training.players.table:cfr",
}
"""What makes each player, imported when first asked for: `make(scenario, seat) -> Player`.

N in a name stands for a number, which is given as well: `mcts:100` searches with 100 simulations a move.
"""
MOST = 100_000
"""Largest number that a name may carry."""

__all__ = ["NAMES", "Player", "facts", "known", "make"]


def _find(name: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the entry of `NAMES` behind a name and the number that it carries; None for no player."""
    base, colon, number = name.partition(":")
    if not colon:
        return (name, ()) if name in NAMES else None
    if f"{base}:N" not in NAMES or not (number.isascii() and number.isdigit() and len(number) <= len(str(MOST))):
        return None
    return (f"{base}:N", (int(number),)) if 1 <= int(number) <= MOST else None


def known(name: str) -> bool:
    """Return whether `name` is a player that needs no model."""
    return _find(name) is not None


def make(name: str, scenario: Scenario, seat: Seat) -> Player:
    """Return a fresh player called `name` for one seat of one episode."""
    found = _find(name)
    if found is None:
        raise BadInput(f"unknown player {name!r}; known: {', '.join(sorted(NAMES))} (N: 1 to {MOST})", "players")
    module, _, function = NAMES[found[0]].partition(":")
    player: Player = getattr(import_module(module), function)(scenario, seat, *found[1])
    return player


def facts(name: str) -> dict[str, Any]:
    """Return what a result says of a player that needs no model."""
    if name != "cfr":
        return {"kind": name}
    from training.players.table import leduc

    return {"kind": name, "exploitability": leduc().exploitability}
