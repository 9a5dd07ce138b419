"""The scripted players of negotiations: one that divides items, one that bargains over a price."""

from __future__ import annotations

from training.games.negotiation.script.items import ItemScript
from training.games.negotiation.script.price import PriceScript
from training.games.negotiation.settings import Items, NegotiationSettings
from training.players.scripted import Script
from training.records import Scenario, Seat


def make(scenario: Scenario, seat: Seat) -> Script:
    """Return the script for what the scenario's deal is about."""
    settings = NegotiationSettings.model_validate(scenario.settings)
    return ItemScript(scenario, seat) if isinstance(settings.deal, Items) else PriceScript(scenario, seat)
