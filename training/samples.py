"""The project's own sample scenarios, as JSONL beside this file: `NAMES`.

`load` raises `BadInput` for an unknown name.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from training.errors import BadInput
from training.records import Scenario
from training.store import dumps, read_lines

FOLDER = Path(__file__).with_suffix("")
NAMES = ("items", "prices", "dialogues", "strategic", "werewolf", "among_us")
"""Item negotiations, price bargains over listings, social dialogues, strategic games of every kind, villages with
werewolves, and ships with an imposter aboard."""

GAMES = {
    "negotiation": ("items", "prices"),
    "dialogue": ("dialogues",),
    **dict.fromkeys(("tic_tac_toe", "connect_four", "kuhn_poker", "leduc_poker", "hanabi"), ("strategic",)),
    "werewolf": ("werewolf",),
    "among_us": ("among_us",),
}
"""Which samples belong to which game."""


def path(name: str) -> Path:
    """Return the JSONL file of one sample; raise `BadInput` if there is none of that name."""
    if name not in NAMES:
        raise BadInput(f"no sample is called {name!r}; there are: {', '.join(NAMES)}", "sample")
    return FOLDER / f"{name}.jsonl"


def load(name: str) -> tuple[Scenario, ...]:
    """Return the scenarios of one sample, in the order of the file."""
    return tuple(Scenario.from_dict(line) for line, _ in read_lines(path(name)))


def for_game(game: str) -> tuple[Scenario, ...]:
    """Return all samples of one game; raise `BadInput` for a game without any."""
    if game not in GAMES:
        raise BadInput(f"there are no samples of {game!r}; there are of: {', '.join(sorted(GAMES))}", "game")
    return tuple(scenario for name in GAMES[game] for scenario in load(name) if scenario.game == game)


def write(game: str, folder: Path) -> Path:
    """Write all samples of one game into `folder`, as one file named by its hash; return it."""
    text = "".join(dumps(scenario.to_dict()) + "\n" for scenario in for_game(game))
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
