"""Players without a model, with their titles: the scripted and the random player, and those of one game only."""

from __future__ import annotations

from training.games import REGISTRY, GameSpec
from training.run_sections import SELF

SCRIPT, CHANCE = "scripted", "random"
EVERYWHERE = {SCRIPT: "a scripted player", CHANCE: "a random player"}
TITLES = {
    "mcts": "a tree search",
    "nash": "an equilibrium strategy",
    "cfr": "a strategy from regret minimisation",
    "follower": "a follower of strategies",
}


def title(name: str) -> str:
    """The title of a player: `mcts:100` is “a tree search (100)”, where the number is its effort."""
    stem, _, effort = name.partition(":")
    words = EVERYWHERE.get(name) or TITLES.get(stem) or f"the player “{stem}”"
    return f"{words} ({effort})" if effort else words


def with_voice(model: str, speaker: str, source: str) -> str:
    """The name of a model's seat: `source` is that of its speaker (empty without one), `speaker` its model's name."""
    if not source:
        return model
    return f"{model}, with strategies of its own" if source == SELF else f"{model}, advising {speaker or title(source)}"


def names(spec: GameSpec) -> tuple[str, ...]:
    """The players available for this game."""
    everywhere = EVERYWHERE if spec.script else (CHANCE,)
    return (*everywhere, *spec.opponents)


def substitute(game: str) -> str:
    """The player for an empty or abandoned seat: the game's script, or the random player if it has none."""
    return SCRIPT if game in REGISTRY and REGISTRY[game].script else CHANCE


def choices(spec: GameSpec) -> list[tuple[str, str]]:
    """(name, label) of these players, for a form."""
    labelled = [(name, title(name)) for name in names(spec)]
    return [(name, label[:1].upper() + label[1:]) for name, label in labelled]
