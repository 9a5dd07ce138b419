"""Every sentence of the dialogue, and the facts that each relationship reveals about the other."""

from __future__ import annotations

from collections.abc import Sequence

from training.games.actions import clean, how_to
from training.games.dialogue.markup import render
from training.games.dialogue.settings import DialogueSettings, EarlierTurn, Profile
from training.records import ALL, SPECTATOR, Action, Seat, Viewer

Names = Sequence[str]

RELATIONSHIPS = (
    "strangers",
    "people who know each other by name",
    "acquaintances",
    "friends",
    "romantic partners",
    "family members",
)
BY_NAME, ACQUAINTANCE, FRIEND, ONESELF = 1, 2, 3, 6
"""Lowest closeness at which a fact is known: the name, the public information, the personality, the secret."""


def biography(name: str, profile: Profile, closeness: int) -> str:
    """Return the facts about a person that are known at `closeness` (a relationship code, or ONESELF); may be empty.

    0: nothing; 1: the name; 2: also age, gender, occupation, pronouns and public information; 3 to 5: also personality
    and values; only ONESELF: also the secret. The levels are SOTOPIA's.
    """
    if closeness < BY_NAME:
        return ""
    if closeness < ACQUAINTANCE:
        return f"{name}."
    described = description(profile)
    who = _sentence(f"{name}: {described}" if described else name)
    return " ".join((who, *facts(profile, closeness)))


def description(profile: Profile) -> str:
    """Return age, gender and occupation, without a full stop; may be empty."""
    age = f"{profile.age}-year-old" if profile.age is not None else ""
    who = " ".join(part for part in (age, profile.gender.lower()) if part)
    # an occupation stays as it is written: NASA engineer, X-ray technician
    return ", ".join(part for part in (who, profile.occupation.strip()) if part)


def facts(profile: Profile, closeness: int) -> tuple[str, ...]:
    """Return what else is known at `closeness`, at least ACQUAINTANCE, as sentences."""
    parts = [f"Pronouns: {profile.pronouns}." if profile.pronouns else "", _sentence(profile.public_info)]
    if closeness >= FRIEND and profile.personality_and_values:
        parts.append(f"Personality and values: {_sentence(profile.personality_and_values)}")
    if closeness >= ONESELF and profile.secret:
        parts.append(f"Secret: {_sentence(profile.secret)}")
    return tuple(part for part in parts if part)


def _sentence(text: str) -> str:
    """Return `text` with a full stop, unless it ends with punctuation."""
    text = text.strip()
    return f"{text}." if text and text[-1] not in ".!?" else text


# --- the first message -----------------------------------------------------------------------------------------------


def opening(settings: DialogueSettings, names: Names, actions: Sequence[Action], viewer: Viewer) -> str:
    """Return the rules with the facts that `viewer` may know about the two people and their goals."""
    scene = f"Scene: {render(settings.scenario, viewer)}"
    tie = f"{names[0]} and {names[1]} are {RELATIONSHIPS[settings.relationship]}."
    people = {SPECTATOR: "", ALL: _everybody(settings, names)}.get(viewer)
    if people is None:
        people = _own_side(settings, names, viewer)
    return "\n\n".join(part for part in (f"{scene}\n{tie}", people, rules(settings, actions)) if part)


def true_name(settings: DialogueSettings, names: Names, seat: Seat) -> str:
    """Return a participant's name: the name at its seat, but among strangers the name in its profile.

    Everybody reads the names at the seats, so a new game of strangers has neutral ones there, such as `Person A`.
    """
    profile = settings.participants[seat].profile
    name = clean(f"{profile.first_name} {profile.last_name}")
    return name if name and settings.relationship < BY_NAME else names[seat]


def _own_side(settings: DialogueSettings, names: Names, seat: Seat) -> str:
    other = 1 - seat
    participant = settings.participants[seat]
    biography_of_other = biography(names[other], settings.participants[other].profile, settings.relationship)
    name = true_name(settings, names, seat)
    alias = "" if name == names[seat] else f", and the other sees you as {names[seat]}"
    return "\n".join(
        [
            f"You are {name}{alias}. Stay in this role.",
            f"About you: {biography(name, participant.profile, ONESELF)}",
            f"About the other: {biography_of_other or 'you know nothing.'}",
            f"Your goal, which only you know: {render(participant.goal, seat, hints=settings.show_hints)}",
        ]
    )


def _everybody(settings: DialogueSettings, names: Names) -> str:
    blocks = []
    for seat, participant in enumerate(settings.participants):
        traits = {
            "Five-factor traits": participant.profile.big_five,
            "Moral values": ", ".join(participant.profile.moral_values),
            "Basic values": ", ".join(participant.profile.schwartz_personal_values),
            "Decision style": participant.profile.decision_making_style,
            "Type": participant.profile.mbti,
        }
        more = " ".join(f"{label}: {_sentence(text)}" for label, text in traits.items() if text)
        name = true_name(settings, names, seat)
        name = name if name == names[seat] else f"{names[seat]} ({name})"
        person = f"{biography(name, participant.profile, ONESELF)} {more}".strip()
        blocks.append(f"{person}\nGoal of {names[seat]}: {render(participant.goal, ALL)}")
    return "\n\n".join(blocks)


ORDER = {
    "alternating": "You take turns.",
    "simultaneous": "Both act at the same time, without seeing what the other does in that turn.",
    "random": "Who has the next turn is drawn by chance.",
}
"""Who acts when, by the setting `order`."""


def rules(settings: DialogueSettings, actions: Sequence[Action]) -> str:
    """Return how the talk runs, generated from the settings."""
    each = f", and each person at most {settings.turns_per_seat}" if settings.turns_per_seat else ""
    reached = ", when a goal is reached" if settings.goal_check else ""
    return (
        f"{ORDER[settings.order]} A turn has at most {settings.max_chars} characters. There are at most "
        f"{settings.turn_limit} turns in all{each}. The conversation ends earlier when somebody leaves{reached} or "
        "when both stay silent twice.\n"
        f"How to act:\n{how_to(actions)}"
    )


# --- what happens ----------------------------------------------------------------------------------------------------


def earlier_turns(names: Names, turns: Sequence[EarlierTurn]) -> str:
    """Return the rounds before the game, one line per turn."""
    lines = [f"{names[turn.seat]} {deed(turn.kind, clean(turn.text))}" for turn in turns]
    return "\n".join(["So far:", *lines])


def deed(kind: str, text: str) -> str:
    """Return a turn in words, without its author's name."""
    return {
        "speak": f'says: "{text}"',
        "nonverbal": f"(non-verbal): {text}",
        "action": f"(action): {text}",
        "none": "does nothing.",
        "leave": "leaves.",
    }[kind]
