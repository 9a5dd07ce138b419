"""Settings of the negotiation: what is divided, its value to each seat, and how the talk runs.

Two kinds of deal: items with private points (CaSiNo, Deal or No Deal) and one price over a listing.
"""

from __future__ import annotations

from math import prod
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from training.games.log import Settings

MOST_SPLITS = 100_000
"""Largest number of splits of a pool; the best joint split is found by enumeration."""


class Item(Settings):
    """One type of item in the pool."""

    name: str = Field(
        pattern=r"^[^\W\d_][\w' -]*$", max_length=40, description="Name of the item, as players write it, such as food."
    )
    count: int = Field(ge=1, le=50, description="How many units of it there are to divide.")

    @field_validator("name")
    @classmethod
    def _one_line(cls, name: str) -> str:
        return " ".join(name.split())


class ItemSide(Settings):
    """The values of the items for one seat; private to it."""

    values: dict[str, Annotated[int, Field(le=1_000_000)]] = Field(
        description="Points a unit of each item is worth to this seat."
    )
    reasons: dict[str, str] = Field(
        default_factory=dict, description="Why this seat wants an item, in its own words; private. May be left out."
    )
    walk_away: float = Field(default=0, ge=0, description="Points this seat gets when there is no deal.")


class Items(Settings):
    """A pool of items to divide; every unit goes to one of the two seats."""

    kind: Literal["items"] = Field(default="items", description="Items are divided.")
    story: str = Field(default="", max_length=4000, description="The situation, told to everybody. May be empty.")
    items: tuple[Item, ...] = Field(min_length=1, max_length=8, description="The pool: item types with counts.")
    sides: tuple[ItemSide, ItemSide] = Field(description="What the items are worth to the first and the second seat.")

    @model_validator(mode="after")
    def _fits(self) -> Items:
        names = [item.name for item in self.items]
        if len({name.lower() for name in names}) != len(names):
            raise ValueError("two items share a name")
        if prod(item.count + 1 for item in self.items) > MOST_SPLITS:
            raise ValueError(f"the pool can be split in more than {MOST_SPLITS} ways; use fewer items")
        for number, side in enumerate(self.sides):
            if set(side.values) != set(names):
                raise ValueError(f"sides.{number}.values must name exactly the items: {', '.join(names)}")
            if unknown := set(side.reasons) - set(names):
                raise ValueError(f"sides.{number}.reasons names unknown items: {', '.join(sorted(unknown))}")
            if min(side.values.values()) < 0:
                raise ValueError(f"sides.{number}.values must not be negative")
            if self.maximum(number) <= 0:
                raise ValueError(f"sides.{number}.values: nothing in the pool is worth anything to this seat")
            if side.walk_away > self.maximum(number):
                raise ValueError(f"sides.{number}.walk_away is more than the whole pool is worth to this seat")
        return self

    def maximum(self, seat: int) -> int:
        """Return the points of the whole pool for `seat`."""
        return sum(item.count * self.sides[seat].values[item.name] for item in self.items)


class PriceSide(Settings):
    """The target of one seat; private to it."""

    target: int = Field(
        ge=0, description="The price this seat hopes for; worth 1 to it. The other's target is worth 0."
    )
    reason: str = Field(default="", max_length=2000, description="Why, in its own words; private. May be empty.")


class Price(Settings):
    """One price for a listing; the first seat buys, the second sells."""

    kind: Literal["price"] = Field(description="A price for a listing is agreed on.")
    title: str = Field(min_length=1, max_length=300, description="Title of the listing.")
    description: str = Field(default="", max_length=6000, description="Text of the listing. May be empty.")
    category: str = Field(default="", max_length=80, description="Category of the listing. May be empty.")
    listing_price: int = Field(ge=1, le=100_000_000, description="The price in the listing, known to both.")
    highest_price: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000_000,
        description="The highest price that may be offered. Empty: twice the listing price.",
    )
    sides: tuple[PriceSide, PriceSide] = Field(description="The buyer's (first seat) and the seller's target.")

    @model_validator(mode="after")
    def _fits(self) -> Price:
        buyer, seller = (side.target for side in self.sides)
        if buyer >= seller:
            raise ValueError(f"sides: the buyer's target ({buyer}) must be below the seller's ({seller})")
        if seller > self.ceiling:
            raise ValueError(f"sides.1.target is above the highest price that may be offered ({self.ceiling})")
        return self

    @property
    def ceiling(self) -> int:
        """The highest legal offer."""
        return 2 * self.listing_price if self.highest_price is None else self.highest_price


class NegotiationSettings(Settings):
    """The settings of a negotiation."""

    deal: Annotated[Items | Price, Field(discriminator="kind")] = Field(description="What is negotiated about.")
    turn_limit: int = Field(
        default=14, ge=2, le=400, description="Turns of both seats together, after which there is no deal."
    )
    first_seat: Literal[0, 1] | None = Field(
        default=0, description="Who begins: 0 the first seat, 1 the second. Empty: drawn from the scenario's seed."
    )
    prosocial: float = Field(
        default=0.0, ge=0, le=1, description="Weight of the partner's result in a seat's own: 0 selfish, 0.5 equal."
    )
    max_chars: int = Field(default=1000, ge=20, le=20_000, description="Longest message, in characters.")
