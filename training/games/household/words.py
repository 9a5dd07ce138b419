"""Every sentence of the household, made from the settings, the task and what happens.

What is seen reads as in ALFWorld.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from training.games.actions import canonical, how_to
from training.games.household.commands import ACTIONS, BY_NAME
from training.games.household.kinds import OPENABLE, kind
from training.games.household.settings import Family, Home, Task
from training.games.prose import count
from training.records import ArgValue

NOTHING = "Nothing happens."
YOUR_TASK = "Your task is to: "
RULES = (
    "One receptacle can be reached at a time, and one object carried. What is in a closed receptacle can be neither "
    "seen nor taken. What is carried is cleaned at a sinkbasin, heated at a microwave and cooled at a fridge. A lamp "
    "is turned on where it stands."
)
SCORING = (
    f"A command that does not work is answered with: {NOTHING} The score is 1 as soon as the task is done, otherwise 0."
)
CONTAINERS = OPENABLE | {"bathtubbasin", "garbagecan", "laundryhamper", "sinkbasin"}
"""Receptacles in which things lie, not on which."""

TASKS: Mapping[Family, tuple[str, ...]] = {
    "pick_and_place": ("put {a_thing} {at}.", "put some {thing} {at}."),
    "two_objects": ("put two {thing} {at}.", "find two {thing} and put them {at}."),
    "clean": ("put a clean {thing} {at}.", "clean some {thing} and put it {at}."),
    "heat": ("put a hot {thing} {at}.", "heat some {thing} and put it {at}."),
    "cool": ("put a cool {thing} {at}.", "cool some {thing} and put it {at}."),
    "look_under_light": ("look at {thing} under the {receptacle}.", "examine the {thing} with the {receptacle}."),
}
"""Two sentences for each family."""


def named(thing: str) -> str:
    """Return `an apple 1`."""
    return f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}"


def where(receptacle: str) -> str:
    """Return `in drawer 1` or `on shelf 2`."""
    return f"{_preposition(kind(receptacle))} {receptacle}"


def _preposition(kind_of_receptacle: str) -> str:
    return "in" if kind_of_receptacle in CONTAINERS else "on"


def _all(things: Sequence[str]) -> str:
    """Return `a cd 1, a mug 2, and a pen 1`."""
    if not things:
        return "nothing"
    *most, last = map(named, things)
    return f"{', '.join(most)}, and {last}" if most else last


def task(wanted: Task, variant: int) -> str:
    """Return the task as a sentence without its beginning."""
    at = f"{_preposition(wanted.receptacle)} {wanted.receptacle}"
    sentence = TASKS[wanted.family][variant]
    return sentence.format(thing=wanted.object, a_thing=named(wanted.object), at=at, receptacle=wanted.receptacle)


# --- the first message -----------------------------------------------------------------------------------------------


def opening(name: str, sentence: str, turn_limit: int, *, addressed: bool, secrets: str = "") -> str:
    """Return the rules with the task, `addressed` to the player or not; `secrets` are for viewers who see all."""
    parts = [
        f"You are {name}." if addressed else "",
        f"This is a household in text. {name} does a task in a room.\n{YOUR_TASK}{sentence}",
        secrets,
        RULES,
        f"Each command is one of at most {count(turn_limit, 'turn')}. {SCORING}",
        f"How to act:\n{how_to(ACTIONS)}",
    ]
    return "\n\n".join(part for part in parts if part)


def secrets(home: Home, plan: Iterable[str]) -> str:
    """Return what is where, and a shortest plan."""
    places = [f"{place}: {', '.join(things) or 'nothing'}" for place, things in home.receptacles.items()]
    return f"At first there is, in or on {'; '.join(places)}.\nA shortest plan: {'; '.join(plan)}."


def of_alfworld(name: str) -> str:
    """Return which game of ALFWorld this is."""
    return f"This is ALFWorld's game {name}."


# --- what is seen ----------------------------------------------------------------------------------------------------


def around(receptacles: Sequence[str]) -> str:
    """Return the room from its middle."""
    return f"You are in the middle of a room. Looking quickly around you, you see {_all(receptacles)}."


def facing(receptacle: str) -> str:
    """Return what is seen in front of a receptacle by looking around."""
    return f"You are facing the {receptacle}. Next to it, you see nothing."


def arrived(receptacle: str) -> str:
    """Return where one has gone."""
    return f"You arrive at {receptacle}."


def opened(receptacle: str) -> str:
    """Return what was opened."""
    return f"You open the {receptacle}."


def closed(receptacle: str) -> str:
    """Return that nothing can be seen in a receptacle."""
    return f"The {receptacle} is closed."


def contents(receptacle: str, things: Sequence[str], *, openable: bool) -> str:
    """Return what is in or on a receptacle."""
    where = f"The {receptacle} is open. In it" if openable else f"On the {receptacle}"
    return f"{where}, you see {_all(things)}."


def inventory(carried: str) -> str:
    """Return what is carried."""
    return f"You are carrying: {named(carried)}." if carried else "You are not carrying anything."


def examined(thing: str, made: Sequence[str]) -> str:
    """Return what became of an object."""
    made = ["cold"] if list(made) == ["cool"] else sorted(made, reverse=True)
    return f"This is a {' and '.join(made)} {thing}." if made else f"There's nothing special about {thing}."


def toggled(thing: str, *, on: bool) -> str:
    """Return what a switch did."""
    return f"You turn {'on' if on else 'off'} the {thing}."


def done(action: str, thing: str, receptacle: str) -> str:
    """Return what was done, for all actions without a sentence of their own."""
    if action == "close":
        return f"You close the {receptacle}."
    if action == "take":
        return f"You pick up the {thing} from the {receptacle}."
    if action == "put":
        return f"You put the {thing} in/on the {receptacle}."
    return f"You {action} the {thing} using the {receptacle}."


# --- what happens ----------------------------------------------------------------------------------------------------


def unchosen(name: str, command: str) -> str:
    """Return what is played for a seat that does not answer."""
    return f"{name} does not answer, so this is played: {command}"


def success(turns: int) -> str:
    """Return the end of a game whose task is done."""
    return f"The task is done in {count(turns, 'turn')}. Score 1."


def failure(why: str) -> str:
    """Return the end of a game whose task is not done."""
    return f"{why} The task is not done. Score 0."


def gives_up(name: str) -> str:
    """Return why a forfeited game ends."""
    return f"{name} gives up."


def out_of_turns(turn_limit: int) -> str:
    """Return why a game ends without success."""
    return f"All {turn_limit} turns are used up."


def remaining(left: int) -> str:
    """Return the reminder near the end, or nothing."""
    return f"Turns left: {left}." if left in (10, 5, 2, 1) else ""


def label(wanted: Task) -> str:
    """Return the task as a title."""
    sentence = task(wanted, 0)
    return f"{sentence[:1].upper()}{sentence[1:-1]}"


def hiding(home: Home) -> str:
    """Return where the objects of a task are at first."""
    places = ((thing, place) for place, things in home.receptacles.items() for thing in things)
    return ", ".join(f"{thing} in or on {place}" for thing, place in places if kind(thing) == home.task.object)


def order(action: str, args: Mapping[str, ArgValue]) -> str:
    """Return a command as text."""
    return canonical(BY_NAME[action], args)
