"""A dialogue as people see it: the scene, two portraits, and the private goal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from training.games.dialogue import words
from training.games.dialogue.markup import render
from training.games.dialogue.settings import DialogueSettings, Profile
from training.games.dialogue.words import Names
from training.games.prose import listed
from training.records import ALL, SPECTATOR, Seat, Viewer
from training.views import Brief, Portrait, Portraits

DOES = {"speak": "speak", "nonverbal": "gesture", "action": "act", "none": "do nothing", "leave": "leave"}
"""What one does in a turn of each kind."""


def scene(settings: DialogueSettings, names: Names, gestures: Sequence[str], viewer: Viewer) -> Portraits:
    """Return the two participants, as far as the viewer may know them; `gestures` are their newest ones."""
    tie = words.RELATIONSHIPS[settings.relationship]
    return Portraits(
        title="The scene",
        setting=f"{story(settings, viewer)}\n{names[0]} and {names[1]} are {tie}.",
        portraits=tuple(
            Portrait(seat=seat, about=_about(settings, names, seat, viewer), mood=gestures[seat]) for seat in (0, 1)
        ),
    )


def _about(settings: DialogueSettings, names: Names, seat: Seat, viewer: Viewer) -> tuple[str, ...]:
    profile = settings.participants[seat].profile
    if viewer == SPECTATOR:
        return ()
    if viewer == 1 - seat:
        if settings.relationship < words.BY_NAME:
            return ("You know nothing of them.",)
        return _known(profile, settings.relationship) or ("You know nothing but the name.",)
    name = words.true_name(settings, names, seat)
    alias = () if name == names[seat] else (f"{name}.",)
    if viewer == seat:  # the secret stands on the private card
        return (*alias, *_known(profile.model_copy(update={"secret": ""}), words.ONESELF))
    goal = f"Goal: {render(settings.participants[seat].goal, ALL)}"
    return (*alias, *_known(profile, words.ONESELF), goal)


def _known(profile: Profile, closeness: int) -> tuple[str, ...]:
    """Return the facts that are known at `closeness`, without the name."""
    if closeness < words.ACQUAINTANCE:
        return ()
    described = words.description(profile)
    return (*([described] if described else ()), *words.facts(profile, closeness))


def story(settings: DialogueSettings, viewer: Viewer) -> str:
    """Return the scene as the viewer knows it."""
    return render(settings.scenario, viewer)


def rules(settings: DialogueSettings) -> tuple[str, ...]:
    """Return how the talk runs, for people."""
    each = f", at most {settings.turns_per_seat} for each" if settings.turns_per_seat else ""
    reached = ", when a goal is reached" if settings.goal_check else ""
    return (
        f"{words.ORDER[settings.order]} There are at most {settings.turn_limit} turns{each}.",
        f"Stay in your role and pursue your goal. In a turn you {_doing(settings)}.",
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


def ask(settings: DialogueSettings) -> str:
    """Return what a seat is to do in its turn."""
    return f"{_doing(settings).capitalize()}." if len(settings.kinds) > 1 else "Say something."


def _doing(settings: DialogueSettings) -> str:
    return listed((does for kind, does in DOES.items() if kind in settings.kinds), "or")


def phase(settings: DialogueSettings, turns: int) -> str:
    """Return the number of the turn, or of the round in which both act, after `turns` of both."""
    each = settings.turns_per_seat
    most = settings.turn_limit if each is None else min(settings.turn_limit, 2 * each)
    if settings.order == "simultaneous":
        return f"Round {min(turns // 2 + 1, most // 2)} of {most // 2}"
    return f"Turn {min(turns + 1, most)} of {most}"


def deed(kind: str, text: str) -> str:
    """Return a turn that is no speech, read after its author's name; nothing for speech."""
    return {"nonverbal": text, "action": text, "none": "does nothing", "leave": "leaves"}.get(kind, "")


# --- the end ---------------------------------------------------------------------------------------------------------


def headline(end: str, names: Names, who: Collection[Seat], viewer: Viewer) -> str:
    """Return how it ended for a viewer; `who` left, gave up, or reached its goal as far as the viewer may know."""
    if end == "goal":
        goal = "the goal" if len(who) == 1 else "their goals"
        return f"{_named(names, who, viewer)} reached {goal}." if who else "A goal was reached."
    return {
        "leave": f"{_named(names, who, viewer)} left the conversation.",
        "forfeit": f"{_named(names, who, viewer)} gave up.",
        "silence": f"{_named(names, (0, 1), viewer)} fell silent.",
        "limit": "All turns are used.",
    }[end]


def _named(names: Names, who: Collection[Seat], viewer: Viewer) -> str:
    """Return some seats as the subject of a sentence; "You" for the viewer's."""
    if viewer in who:
        return "You" if len(who) == 1 else "You both"
    return listed(names[seat] for seat in sorted(who)) if who else ""


def moment(end: str, names: Names, who: Collection[Seat], turns: int) -> str:
    """Return what ended it, for everybody; `who` left or gave up, in turn number `turns`."""
    did = {
        "leave": f"{_named(names, who, SPECTATOR)} left",
        "forfeit": f"{_named(names, who, SPECTATOR)} gave up",
        "goal": "A goal was reached",
        "silence": f"{names[0]} and {names[1]} were silent twice in a row, until",
        "limit": "The last words were said",
    }[end]
    return f"{did} turn {turns}." if end == "silence" else f"{did} in turn {turns}."
