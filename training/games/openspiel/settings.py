"""Settings of the strategic games. They allow only parameters that OpenSpiel accepts, because it aborts on others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from training.games.log import Settings

Whole = Annotated[int, Field(ge=0, lt=1_000_000)]


class OpenSpielSettings(Settings):
    """Settings of all strategic games."""

    fixed: tuple[Whole, ...] = Field(
        default=(),
        max_length=100,
        description="Outcomes of chance in order (the deal, the cards drawn), as OpenSpiel numbers them; those left "
        "open come from the seed.",
    )
    opening: tuple[Whole, ...] = Field(
        default=(),
        max_length=100,
        description="Moves played before the game begins, in order, as OpenSpiel numbers them (cells, columns).",
    )


def undealt(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without outcomes of chance, and without an opening that depends on them."""
    left_out = ("fixed", "opening") if settings.get("fixed") else ()
    return {name: value for name, value in settings.items() if name not in left_out}


class HanabiSettings(OpenSpielSettings):
    """Hanabi comes in two sizes."""

    size: Literal["mini", "simple"] = Field(
        default="mini",
        description="mini: 2 colours, 3 cards a hand, 3 information tokens; simple: 3 colours, 5 cards, 8 tokens.",
    )
