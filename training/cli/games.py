"""`python -m training games`: lists the games."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from training.games import REGISTRY


def main(arguments: Namespace) -> dict[str, Any]:
    """Return every registered game with its declared properties."""
    games = [
        {
            "name": spec.name,
            "title": spec.title,
            "summary": spec.summary,
            "players": list(spec.players),
            "returns": [spec.low, spec.high],
            "judged": spec.judged,
            "zero_sum": spec.zero_sum,
            "symmetric": spec.symmetric,
        }
        for spec in REGISTRY.values()
    ]
    return {"games": games}


def show(result: dict[str, Any]) -> str:
    """Return one line per game."""
    width = max(len(game["name"]) for game in result["games"])
    return "\n".join(f"{game['name']:{width}}  {game['summary']}" for game in result["games"])
