"""A dialogue as people see it: the scene, two portraits, and the private goal."""

from __future__ import annotations

from training.games.dialogue import words
from training.games.dialogue.markup import render
from training.games.dialogue.settings import DialogueSettings, Profile
from training.games.dialogue.words import Names
from training.records import ALL, SPECTATOR, Seat, Viewer
from training.views import Brief, Portrait, Portraits


def scene(settings: DialogueSettings, names: Names, viewer: Viewer) -> Portraits:
    """Return the two participants, as far as the viewer may know them."""
    return Portraits(
        title="The scene",
        setting=f"{names[0]} and {names[1]} are {words.RELATIONSHIPS[settings.relationship]}.",
        portraits=tuple(Portrait(seat=seat, about=_about(settings, names, seat, viewer)) for seat in (0, 1)),
    )


def _about(settings: DialogueSettings, names: Names, seat: Seat, viewer: Viewer) -> tuple[str, ...]:
    profile = settings.participants[seat].profile
    if viewer == SPECTATOR:
        return ()
    if viewer not in (0, 1):
        name = words.true_name(settings, names, seat)
        goal = f"Goal: {render(settings.participants[seat].goal, ALL)}"
        return (words.biography(name, profile, words.ONESELF), goal)
    if viewer == seat:
        known = words.biography(words.true_name(settings, names, seat), _without_secret(settings, seat), words.ONESELF)
    else:
        known = words.biography(names[seat], profile, settings.relationship)
    return (known or "You know nothing of them.",)


def _without_secret(settings: DialogueSettings, seat: Seat) -> Profile:
    """Return a profile whose secret stands on the private card."""
    return settings.participants[seat].profile.model_copy(update={"secret": ""})


def story(settings: DialogueSettings, viewer: Viewer) -> str:
    """Return the scene as the viewer knows it."""
    return render(settings.scenario, viewer)


def rules(settings: DialogueSettings) -> tuple[str, ...]:
    """Return how the talk runs, for people."""
    order = {
        "alternating": "You take turns.",
        "simultaneous": "Both act at the same time, without seeing what the other does in that turn.",
        "random": "Who has the next turn is drawn by chance.",
    }[settings.order]
    each = f", at most {settings.turns_per_seat} for each" if settings.turns_per_seat else ""
    reached = ", when a goal is reached" if settings.goal_check else ""
    return (
        f"{order} There are at most {settings.turn_limit} turns{each}.",
        "Stay in your role and pursue your goal. In a turn you speak, gesture, act, or do nothing.",
        f"The conversation ends earlier when somebody leaves{reached}, or when both stay silent twice.",
    )


def brief(settings: DialogueSettings, names: Names, seat: Seat) -> Brief:
    """Return the goal and the secret of a seat."""
    participant = settings.participants[seat]
    name = words.true_name(settings, names, seat)
    alias = () if name == names[seat] else (f"You are {name}, and the other sees you as {names[seat]}.",)
    secret = (f"Your secret: {participant.profile.secret}",) if participant.profile.secret else ()
    goal = render(participant.goal, seat, hints=settings.show_hints)
    return Brief(title="Your goal", text=(goal, *secret, *alias), emblem="point")


def deed(kind: str, text: str) -> str:
    """Return a turn that is no speech, read after its author's name; nothing for speech."""
    return {"nonverbal": text, "action": text, "none": "says nothing", "leave": "leaves"}.get(kind, "")
