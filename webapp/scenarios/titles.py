"""A scenario in lists: its short name, and for researchers what tells it from others of that name."""

from __future__ import annotations

from training.games import lookup
from training.records import Scenario


def title_of(scenario: Scenario) -> str:
    """Return what the game calls this scenario, cut to what the column holds."""
    return lookup(scenario.game).label(scenario)[:200]


def seats_of(scenario: Scenario) -> list[str]:
    """Return what each seat alone knows, a line a seat. Only for pages that show whole scenarios, never a player's."""
    private = zip(scenario.seats, lookup(scenario.game).private(scenario), strict=True)
    return [f"{name}: {text}" for name, text in private if text]
