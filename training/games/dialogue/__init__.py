"""Two people with profiles, secrets and private goals talk to each other, after SOTOPIA; a judge scores them."""

from __future__ import annotations

from training.games.base import GameSpec, sample_files, without
from training.games.dialogue.game import HIGH, LOW, Dialogue
from training.games.dialogue.markup import render
from training.games.dialogue.settings import DialogueSettings, EarlierTurn, Participant, Profile
from training.games.dialogue.words import BY_NAME
from training.games.log import read_settings
from training.records import SPECTATOR, Scenario

__all__ = ["SPEC", "Dialogue", "DialogueSettings", "EarlierTurn", "Participant", "Profile"]

STRANGERS = ("Person A", "Person B")
"""The names at the seats of strangers, who know nothing of each other."""

LABEL = 80
"""Longest label of a scene or goal, in characters."""


def label(scenario: Scenario) -> str:
    """Return the beginning of the scene, as everybody may read it; a codename may give a goal away."""
    return _short(render(DialogueSettings.model_validate(scenario.settings).scenario, SPECTATOR))


def private(scenario: Scenario) -> tuple[str, ...]:
    """Return the beginning of each seat's goal."""
    people = DialogueSettings.model_validate(scenario.settings).participants
    return tuple(_short(render(person.goal, seat)) for seat, person in enumerate(people))


def anonymised(scenario: Scenario) -> Scenario:
    """Return a scenario of strangers with neutral names at the seats, if those there are the participants' names.

    Everybody reads the names at the seats; each participant reads its profile's name in its own brief.
    """
    settings = read_settings(DialogueSettings, scenario)
    profiles = [person.profile for person in settings.participants]
    true_names = {part for p in profiles for part in f"{p.first_name} {p.last_name}".casefold().split()}
    if settings.relationship >= BY_NAME or true_names.isdisjoint(" ".join(scenario.seats).casefold().split()):
        return scenario
    return scenario.model_copy(update={"seats": STRANGERS})


def _short(text: str) -> str:
    return text if len(text) <= LABEL else f"{text[:LABEL].rsplit(' ', 1)[0]} …"


SPEC = GameSpec(
    name="dialogue",
    focus="talk",
    title="Social dialogue",
    summary="Two people with profiles, secrets and private goals talk; a judge scores seven social dimensions.",
    make=Dialogue,
    settings=DialogueSettings,
    players=(2, 2),
    undealt=without("fixed_order"),
    scenario_only=("fixed_order", "goal_check", "goal_check_every"),
    anonymised=anonymised,
    low=LOW,
    high=HIGH,
    judged=True,
    label=label,
    private=private,
    actions=("speak", "nonverbal", "action", "none", "leave"),
    script="training.games.dialogue.script:DialogueScript",
    samples=sample_files("dialogues"),
    rated_by="sotopia",
)
