"""A room as it is lived in: which commands work, what they do and what is seen after them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

from training.errors import BadInput
from training.games.household import words
from training.games.household.commands import BY_NAME, Choices
from training.games.household.kinds import LAMP, OBJECTS, OPENABLE, TOOLS, fits, is_open, kind
from training.games.household.settings import Home, Task
from training.games.household.state import State, share
from training.records import ArgValue

KNOWN = frozenset(place for each in OBJECTS.values() for place in each.places) | {"toaster"}
"""The kinds of receptacles."""


MOST_ALIKE = 10
"""Objects at most of the task's kind, and lamps: the planner compares a plan for each of them with each place."""


class Room(Protocol):
    """What a household is played in: a `World`, or a game of ALFWorld."""

    task: Task
    state: State
    receptacles: tuple[str, ...]

    @property
    def won(self) -> bool:
        """Whether the task is done."""

    def around(self) -> str:
        """Return what is seen at first, from the middle of the room."""

    def choices(self) -> Choices:
        """Return the commands that work now."""

    def known(self, receptacle: str) -> tuple[str, ...] | None:
        """Return the objects in or on a receptacle as far as the player has seen them; None if it has not."""

    def act(self, action: str, args: Mapping[str, ArgValue]) -> str:
        """Perform a command and return what is seen; `words.NOTHING`, and nothing else, if it does not work."""


def check(home: Home) -> None:
    """Raise `BadInput` for a home with things that are not known, and for one whose task is already done."""
    seen: set[str] = set()
    for receptacle, things in home.receptacles.items():
        if kind(receptacle) not in KNOWN:
            raise BadInput(
                f"there is no receptacle {receptacle!r}: {', '.join(sorted(KNOWN))}", "settings.home.receptacles"
            )
        for thing in things:
            if kind(thing) not in OBJECTS or thing in seen:
                why = "is listed twice" if thing in seen else f"is none of: {', '.join(sorted(OBJECTS))}"
                raise BadInput(f"{thing!r} {why}", f"settings.home.receptacles.{receptacle}")
            seen.add(thing)
    task = home.task
    for name in (task.object, LAMP):
        if (count := sum(kind(thing) == name for thing in seen)) > MOST_ALIKE:
            raise BadInput(f"at most {MOST_ALIKE} of {name!r}, not {count}", "settings.home.receptacles")
    needed = LAMP if task.family == "look_under_light" else None
    if task.object not in OBJECTS or task.object == LAMP:
        raise BadInput(f"{task.object!r} is not an object that can be carried", "settings.home.task.object")
    if (task.receptacle != needed) if needed else (task.receptacle not in OBJECTS[task.object].places):
        why = f"is no {LAMP}" if needed else f"is no place for {words.named(task.object)}"
        raise BadInput(f"{task.receptacle!r} {why}", "settings.home.task.receptacle")
    if task.family in TOOLS and task.family not in OBJECTS[task.object].changes:
        raise BadInput(f"nobody can {task.family} {words.named(task.object)}", "settings.home.task.object")
    if World(home).won:
        raise BadInput("the task is done before the first turn", "settings.home.task")


class World:
    """One room with its objects. Closed receptacles hide what is in them."""

    def __init__(self, home: Home) -> None:
        self.task = home.task
        self.receptacles = tuple(home.receptacles)
        self.state = State(places={thing: place for place, things in home.receptacles.items() for thing in things})
        self._looked_into: set[str] = set()

    @property
    def won(self) -> bool:
        """Whether the task is done."""
        return share(self.task, self.state) == 1

    def around(self) -> str:
        """Return what is seen at first."""
        return words.around(self.receptacles)

    def choices(self) -> Choices:
        """Return the commands that work now."""
        state = self.state
        at, carried = state.at, state.carried
        accessible = bool(at) and is_open(at, state.opened)
        here = state.inside(at) if accessible else ()
        lamps = tuple(thing for thing in here if kind(thing) == LAMP)
        listed: dict[str, tuple[tuple[str, ...], ...]] = {"go_to": (self._others[at],)}
        if at or carried:
            listed["examine"] = (tuple(name for name in (at, carried) if name),)
        if at and kind(at) in OPENABLE:
            listed["close" if accessible else "open"] = ((at,),)
        if lamps:
            listed["toggle"] = (lamps,)
        if here and not carried and len(lamps) < len(here):
            listed["take"] = (tuple(thing for thing in here if kind(thing) != LAMP), (at,))
        if carried and at:
            if accessible and fits(carried, at):
                listed["put"] = ((carried,), (at,))
            for change in OBJECTS[kind(carried)].changes:
                if kind(at) == TOOLS[change]:
                    listed[change] = ((carried,), (at,))
        return listed

    def act(self, action: str, args: Mapping[str, ArgValue]) -> str:
        """Perform a command and return what is seen; `words.NOTHING`, and nothing else, if it does not work."""
        if BY_NAME[action].args:
            works = self.choices().get(action, ())
            values = [args[arg.name] for arg in BY_NAME[action].args]
            if not works or any(value not in each for value, each in zip(values, works, strict=True)):
                return words.NOTHING
        self.state.apply(action, args)
        if self.state.at and is_open(self.state.at, self.state.opened):
            self._looked_into.add(self.state.at)
        return self._seen(action, str(args.get("object", "")), str(args.get("receptacle", "")))

    def known(self, receptacle: str) -> tuple[str, ...] | None:
        """Return what is in or on a receptacle that was seen open; only its player changes that afterwards."""
        return self.state.inside(receptacle) if receptacle in self._looked_into else None

    @cached_property
    def _others(self) -> dict[str, tuple[str, ...]]:
        """By the receptacle in front, the ones to which one can go."""
        return {at: tuple(name for name in self.receptacles if name != at) for at in ("", *self.receptacles)}

    def _seen(self, action: str, thing: str, receptacle: str) -> str:
        """Return what is seen after an action."""
        match action:
            case "go_to":
                return f"{words.arrived(receptacle)} {self._contents(receptacle)}"
            case "open":
                return f"{words.opened(receptacle)} {self._contents(receptacle)}"
            case "examine":
                return self._contents(thing) if thing == self.state.at else self._carried(thing)
            case "look":
                return words.facing(self.state.at) if self.state.at else self.around()
            case "inventory":
                return words.inventory(self.state.carried)
            case "toggle":
                return words.toggled(thing, on=thing in self.state.lit)
            case _:
                return words.done(action, thing, receptacle)

    def _contents(self, receptacle: str) -> str:
        if not is_open(receptacle, self.state.opened):
            return words.closed(receptacle)
        return words.contents(receptacle, self.state.inside(receptacle), openable=kind(receptacle) in OPENABLE)

    def _carried(self, thing: str) -> str:
        return words.examined(thing, tuple(self.state.made.get(thing, ())))
