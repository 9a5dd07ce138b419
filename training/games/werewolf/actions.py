"""The declared actions of Werewolf; targets are names of players, or nobody."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from training.records import Action, Argument

NOBODY = "nobody"
TARGET = "target"
HIGHEST_BID = 4

SPEAK = Action(name="speak", text="required", bare=True, label="Speak to everybody")
WHISPER = Action(name="whisper", text="required", bare=True, label="Speak to the other werewolves alone")
SAVE = Action(name="save", text="private", label="Give the antidote to tonight's victim")
PASS = Action(name="pass", text="private", label="Use no potion tonight")
BID = Action(
    name="bid",
    args=(Argument(name="level", kind="integer", low=0, high=HIGHEST_BID),),
    text="private",
    label="Bid for the floor, from 0 (listen) to 4 (must speak now)",
)

Aimed = Literal["vote", "kill", "inspect", "guard", "protect", "poison", "shoot"]
_LABELS: dict[Aimed, str] = {
    "vote": "Vote to send a player away",
    "kill": "Vote for the victim of the werewolves",
    "inspect": "Learn whether a player is a werewolf",
    "guard": "Guard a player against the werewolves tonight",
    "protect": "Protect a player against the werewolves tonight",
    "poison": "Poison a player",
    "shoot": "Shoot a player as you die",
}
NAMES: tuple[str, ...] = ("speak", "whisper", "bid", *_LABELS, "save", "pass")
"""All actions that are ever offered."""


@lru_cache(maxsize=4096)
def aimed(name: Aimed, targets: tuple[str, ...]) -> Action:
    """Return the action `name` with one of `targets` or nobody as target; poison, which is optional, has no nobody."""
    choices = targets if name == "poison" else (*targets, NOBODY)
    argument = Argument(name=TARGET, kind="choice", choices=choices)
    return Action(name=name, args=(argument,), text="private", label=_LABELS[name])
