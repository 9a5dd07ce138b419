"""Who can sit at a seat: model, random and scripted players. Players that need no model are made here by name.

`make` raises `BadInput` for an unknown name or a game without a script.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from training.errors import BadInput
from training.players.base import Player
from training.records import Scenario, Seat

NAMES: dict[str, str] = {"scripted": "training.players.scripted", "random": "training.players.random"}
"""Module of each player by name; it offers `make(scenario, seat) -> Player` and is imported when first asked for."""

__all__ = ["NAMES", "Player", "make"]


def make(name: str, scenario: Scenario, seat: Seat) -> Player:
    """Return a fresh player called `name` for one seat of one episode."""
    if name not in NAMES:
        raise BadInput(f"unknown player {name!r}; known: {', '.join(sorted(NAMES))}", "players")
    build: Callable[[Scenario, Seat], Player] = import_module(NAMES[name]).make
    return build(scenario, seat)
