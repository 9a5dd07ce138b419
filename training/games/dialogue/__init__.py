"""Two people with profiles, secrets and private goals talk to each other, after SOTOPIA; a judge scores them."""

from __future__ import annotations

from training.games.base import GameSpec
from training.games.dialogue.game import HIGH, LOW, Dialogue
from training.games.dialogue.settings import DialogueSettings, GivenTurn, Participant, Profile
from training.records import Scenario

__all__ = ["SPEC", "Dialogue", "DialogueSettings", "GivenTurn", "Participant", "Profile"]


def label(scenario: Scenario) -> str:
    """Return the scene's name, or its beginning."""
    settings = DialogueSettings.model_validate(scenario.settings)
    return settings.codename.replace("_", " ") or settings.scenario[:80]


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
    label=label,
    actions=("speak", "nonverbal", "action", "none", "leave"),
)
