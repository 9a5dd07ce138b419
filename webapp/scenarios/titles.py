"""A scenario in lists: its title, and for researchers each seat's private information."""

from __future__ import annotations

from pydantic import ValidationError

from training.errors import BadInput
from training.games import lookup
from training.records import Scenario


def title_of(scenario: Scenario) -> str:
    """Return the game's label of this scenario, cut to the column's length."""
    return lookup(scenario.game).label(scenario)[:200]


def seats_of(scenario: Scenario) -> list[str]:
    """Return each seat's private information, one line per seat. Not for pages that players see.

    There is none where the game's present settings are others than those of the scenario.
    """
    try:
        private = zip(scenario.seats, lookup(scenario.game).private(scenario), strict=True)
    except (ValidationError, BadInput):
        return []
    return [f"{name}: {text}" for name, text in private if text]
