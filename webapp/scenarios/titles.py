"""A scenario's short name for lists."""

from __future__ import annotations

from training.games import REGISTRY
from training.records import Scenario


def title_of(scenario: Scenario) -> str:
    """Return what the game calls this scenario, cut to what the column holds."""
    return REGISTRY[scenario.game].label(scenario)[:200]
