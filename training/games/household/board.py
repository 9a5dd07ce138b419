"""The room, for people: where one is and what is there, what is carried, where one can go, and what can be done."""

from __future__ import annotations

from itertools import product

from training.games.household import words
from training.games.household.commands import BY_NAME, Choices
from training.games.household.state import MADE
from training.games.household.world import Room
from training.views import Entries, Entry, Option, Zone

OF_PLACE = ("open", "close")
"""Commands about the receptacle in front."""
OF_THING = ("take", "toggle")
"""Commands about an object that lies there."""
OF_CARRIED = ("put", "clean", "heat", "cool")
"""Commands about the object that is carried."""


def zones(room: Room, happened: str, *, presses: bool) -> tuple[Zone, ...]:
    """Return where one is and what has `happened` there, what lies there, what is carried, and the receptacles.

    There are buttons only if one `presses` them: for every command that works and changes something.
    """
    choices = room.choices() if presses else {}
    shown = (_here(room, happened, choices), _lying(room, choices), _hand(room, choices), _places(room, choices))
    return tuple(zone for zone in shown if zone.entries)


def _here(room: Room, happened: str, choices: Choices) -> Entries:
    """Return the receptacle in front, with what has just happened."""
    at = room.state.at
    place = Entry(
        name=at or "The middle of the room",
        detail=(happened,) if happened else (),
        options=_options(room, choices, OF_PLACE, at) if at else (),
    )
    return Entries(title="Here", entries=(place,), shape="item")


def _lying(room: Room, choices: Choices) -> Entries:
    at = room.state.at
    entries = tuple(
        Entry(name=thing, detail=_facts(room, thing), options=_options(room, choices, OF_THING, thing))
        for thing in room.known(at) or ()
    )
    return Entries(title=_sentence(words.where(at)) if at else "", entries=entries)


def _hand(room: Room, choices: Choices) -> Entries:
    carried = room.state.carried
    in_hand = Entry(
        name=carried or "Nothing",
        detail=_facts(room, carried),
        options=_options(room, choices, OF_CARRIED, carried) if carried else (),
    )
    return Entries(title="In the hand", entries=(in_hand,))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _facts(room: Room, thing: str) -> tuple[str, ...]:
    """Return what the player has made of an object."""
    made = room.state.made.get(thing, set())
    return (*(fact for fact in MADE.values() if fact in made), *(("on",) if thing in room.state.lit else ()))


def _options(room: Room, choices: Choices, actions: tuple[str, ...], thing: str) -> tuple[Option, ...]:
    """Return the commands among these that work and whose first argument is `thing`."""
    return tuple(
        Option(label=_label(room, action, thing), choice=command)
        for action in actions
        for command, first in _commands(choices, action)
        if first == thing
    )


def _label(room: Room, action: str, thing: str) -> str:
    if action == "toggle":
        return "Switch" if thing in room.state.lit else "Turn on"  # in ALFWorld a lamp that is on stays on
    return f"Put {words.where(room.state.at)}" if action == "put" else action.capitalize()


def _places(room: Room, choices: Choices) -> Entries:
    """Return the receptacles, each with what was seen in or on it."""
    commands = {name: command for command, name in _commands(choices, "go_to")}
    entries = tuple(
        Entry(
            name=place,
            detail=_contents(room, place),
            picked=place == room.state.at,
            choice=commands.get(place, ""),
        )
        for place in room.receptacles
    )
    return Entries(title="Go to" if commands else "The room", entries=entries, shape="chips")


def _contents(room: Room, place: str) -> tuple[str, ...]:
    things = room.known(place)
    return () if things is None else things or ("empty",)


def _commands(choices: Choices, action: str) -> list[tuple[str, str]]:
    """Return the commands of an action that work, each with the first thing that it names."""
    if action not in choices:
        return []
    names = [arg.name for arg in BY_NAME[action].args]
    return [
        (words.order(action, dict(zip(names, values, strict=True))), values[0]) for values in product(*choices[action])
    ]
