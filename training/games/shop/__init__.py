"""A customer searches an online shop and buys one product that fits an instruction (WebShop's task in text)."""

from __future__ import annotations

from training.games.base import GameSpec, sample_files
from training.games.prose import NAMES
from training.games.shop.game import Shop
from training.games.shop.settings import Goal, ShopSettings
from training.records import Scenario

__all__ = ["SPEC", "Goal", "Shop", "ShopSettings"]


def label(scenario: Scenario) -> str:
    """Return the instruction, or from where it is drawn."""
    settings = ShopSettings.model_validate(scenario.settings)
    return settings.goal.instruction if settings.goal else f"An instruction of {settings.catalogue}"


def private(scenario: Scenario) -> tuple[str, ...]:
    """Return the product from which the instruction was made, where it is stated."""
    goal = ShopSettings.model_validate(scenario.settings).goal
    return (f"made from {goal.product}" if goal else "",)


def start(seats: int) -> Scenario:
    """Return a visit with a drawn instruction."""
    return Scenario(id="shop", game="shop", seats=NAMES[:seats])


SPEC = GameSpec(
    name="shop",
    title="Shop",
    summary="Search an online shop and buy one product that fits an instruction.",
    make=Shop,
    settings=ShopSettings,
    players=(1, 1),
    low=0.0,
    high=1.0,
    reach=True,
    label=label,
    private=private,
    start=start,
    actions=("search", "click"),
    scenario_only=("catalogue", "sha256", "goal"),
    script="training.games.shop.script:ShopScript",
    samples=sample_files("shop"),
)
