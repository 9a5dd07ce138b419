"""Two seats divide items or agree on a price: talk freely, propose, accept, reject, walk away."""

from __future__ import annotations

from training.games.base import GameSpec, sample_files
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


def private(scenario: Scenario) -> tuple[str, ...]:
    """Return what a unit of each item is worth to each seat, the dearest first, or the price it hopes for."""
    deal = NegotiationSettings.model_validate(scenario.settings).deal
    if isinstance(deal, Price):
        return tuple(f"hopes for {side.target}" for side in deal.sides)
    ranked = (sorted(side.values.items(), key=lambda entry: -entry[1]) for side in deal.sides)
    return tuple(", ".join(f"{name} {points}" for name, points in values) for values in ranked)


SPEC = GameSpec(
    name="negotiation",
    focus="talk",
    title="Negotiation",
    summary="Divide items with private points, or agree on a price, by talking and formal proposals.",
    make=Negotiation,
    settings=NegotiationSettings,
    players=(2, 2),
    low=0.0,
    high=1.0,
    reach=True,
    label=label,
    private=private,
    actions=("talk", "propose", "accept", "reject", "walk_away"),
    script="training.games.negotiation.script:make",
    samples=sample_files("items", "prices"),
    rated_by="fine-grained",
)
