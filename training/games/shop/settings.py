"""Settings of the shop: which catalogue, what the customer is to buy, how many turns."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from training.games.log import Settings

Phrase = Annotated[str, Field(max_length=200, pattern=r"\S")]


class Goal(Settings):
    """An instruction, and what it asks for in terms of the reward; seats read the instruction alone."""

    instruction: str = Field(max_length=2000, pattern=r"\S", description="What to buy, as the customer reads it.")
    product: str = Field(
        min_length=1,
        max_length=20,
        description="Number of the product from which the instruction was made: its title, category and query are "
        "compared with those of the product bought.",
    )
    attributes: tuple[Phrase, ...] = Field(
        default=(), max_length=50, description="Attributes that the product should have."
    )
    options: tuple[Phrase, ...] = Field(default=(), max_length=50, description="Values of options to choose.")
    price_limit: float | None = Field(
        default=None, ge=0, le=1e9, description="The highest price in dollars. Empty: any price."
    )
    best: float | None = Field(
        default=None, ge=0, le=1, description="The highest reward of any purchase. Empty: not known."
    )


CATALOGUE_NAME = r"[a-z0-9][a-z0-9._-]{0,79}"
"""The pattern of a catalogue's name: that of a folder, and no path."""


class ShopSettings(Settings):
    """The settings of a visit to the shop."""

    catalogue: str = Field(
        default="generated-1",
        pattern=rf"^{CATALOGUE_NAME}$",
        description="Name of the catalogue: generated-1, or a folder of WebShop's files in PARLEY_HOME/catalogues.",
    )
    sha256: str = Field(
        default="",
        pattern=r"^([0-9a-f]{64})?$",
        description="Hash of the catalogue's files. May be empty for generated-1.",
    )
    goal: Goal | None = Field(
        default=None, description="What to buy. Empty: drawn from the scenario's seed among the catalogue's goals."
    )
    split: Literal["all", "train", "test"] = Field(
        default="all",
        description="The catalogue's goals among which one is drawn: every fifth is for tests, the others to train.",
    )
    turn_limit: int = Field(default=10, ge=1, le=100, description="Turns, after which nothing is bought.")
