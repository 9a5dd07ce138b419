"""What players are asked about each other after a game."""

from __future__ import annotations

from training.games import REGISTRY
from training.labels.codebooks import CODEBOOKS, Codebook

ASKED_FIRST: tuple[str, ...] = (
    "mutual_benefit",
    "believability",
    "voting_manipulation",
    "recognising_deception",
)
"""Label types of these codebooks that players are asked first, one of each codebook and role; others on request."""


def rated_after(game: str) -> Codebook | None:
    """Return the codebook by which players rate each other after a game; None if they do not, or for no game."""
    return CODEBOOKS.get(REGISTRY[game].rated_by) if game in REGISTRY else None
