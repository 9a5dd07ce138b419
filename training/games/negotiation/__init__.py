"""Two seats divide items or agree on a price: talk freely, propose, accept, reject, walk away."""

from __future__ import annotations

from training.games.base import GameSpec
from training.games.negotiation.game import Negotiation
from training.games.negotiation.settings import Item, Items, ItemSide, NegotiationSettings, Price, PriceSide
from training.records import Scenario

__all__ = ["SPEC", "Item", "ItemSide", "Items", "Negotiation", "NegotiationSettings", "Price", "PriceSide"]


def label(scenario: Scenario) -> str:
    """Return the listing's title, or the pool; what it is worth to whom is private."""
    deal = NegotiationSettings.model_validate(scenario.settings).deal
    if isinstance(deal, Price):
        return deal.title
    return ", ".join(f"{item.name} {item.count}" for item in deal.items)


SPEC = GameSpec(
    name="negotiation",
    title="Negotiation",
    summary="Divide items with private points, or agree on a price, by talking and formal proposals.",
    make=Negotiation,
    settings=NegotiationSettings,
    players=(2, 2),
    low=0.0,
    high=1.0,
    label=label,
    actions=("talk", "propose", "accept", "reject", "walk_away"),
)
