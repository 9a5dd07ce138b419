"""Players that need no model, in words: the scripted and the random one, and those that play one game only."""

from __future__ import annotations

from training.games import REGISTRY, GameSpec

SCRIPT, CHANCE = "scripted", "random"
EVERYWHERE = {SCRIPT: "a scripted player", CHANCE: "a random player"}
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


def names(spec: GameSpec) -> tuple[str, ...]:
    """Every player that can sit down at this game; a script has been written for the registered ones only."""
    everywhere = EVERYWHERE if spec.name in REGISTRY else (CHANCE,)
    return (*everywhere, *spec.opponents)


def substitute(game: str) -> str:
    """The player that takes an empty or abandoned seat: the game's script, or chance where there is none."""
    return SCRIPT if game in REGISTRY else CHANCE


def choices(spec: GameSpec) -> list[tuple[str, str]]:
    """(name, label) of these players, for a form."""
    found = [(name, title(name)) for name in names(spec)]
    return [(name, label[:1].upper() + label[1:]) for name, label in found]
