"""Two people with profiles, secrets and private goals talk to each other, after SOTOPIA; a judge scores them."""

from __future__ import annotations

from training.games.base import GameSpec
from training.games.dialogue.game import HIGH, LOW, Dialogue
from training.games.dialogue.settings import DialogueSettings, GivenTurn, Participant, Profile

__all__ = ["SPEC", "Dialogue", "DialogueSettings", "GivenTurn", "Participant", "Profile"]

SPEC = GameSpec(
    name="dialogue",
    title="Social dialogue",
    summary="Two people with profiles, secrets and private goals talk; a judge scores seven social dimensions.",
    make=Dialogue,
    settings=DialogueSettings,
    players=(2, 2),
    low=LOW,
    high=HIGH,
    judged=True,
    actions=("speak", "nonverbal", "action", "none", "leave"),
)
