"""Two seats divide items or agree on a price: talk freely, propose, accept, reject, walk away."""

from __future__ import annotations

from training.games.base import GameSpec
from training.games.negotiation.game import Negotiation
from training.games.negotiation.settings import Item, Items, ItemSide, NegotiationSettings, Price, PriceSide
from training.records import Scenario

__all__ = ["SPEC", "Item", "ItemSide", "Items", "Negotiation", "NegotiationSettings", "Price", "PriceSide"]


def label(scenario: Scenario) -> str:
    """Return the listing's title, or the pool with each side's values."""
    deal = NegotiationSettings.model_validate(scenario.settings).deal
    if isinstance(deal, Price):
        return deal.title
    values = ["/".join(str(side.values[item.name]) for item in deal.items) for side in deal.sides]
    return f"{', '.join(f'{item.count} {item.name}' for item in deal.items)} ({' against '.join(values)})"


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
