"""Players that need no model, in words: the scripted and the random one, and those that play one game only."""

from __future__ import annotations

from training.games import GameSpec

EVERYWHERE = {"scripted": "a scripted player", "random": "a random player"}
TITLES = {
    "mcts": "a tree search",
    "nash": "an equilibrium strategy",
    "cfr": "a strategy from regret minimisation",
}


def title(name: str) -> str:
    """What a player is called at the table: `mcts:100` is “a tree search (100)”, the number being its effort."""
    stem, _, effort = name.partition(":")
    words = EVERYWHERE.get(name) or TITLES.get(stem) or f"the player “{stem}”"
    return f"{words} ({effort})" if effort else words


def choices(spec: GameSpec) -> list[tuple[str, str]]:
    """(name, label) of every player that can sit down at this game, for a form."""
    found = [(name, title(name)) for name in (*EVERYWHERE, *spec.opponents)]
    return [(name, label[:1].upper() + label[1:]) for name, label in found]
