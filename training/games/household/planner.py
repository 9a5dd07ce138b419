"""A shortest plan for a home whose contents are known, proved by playing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

from training.errors import BadInput
from training.games.household.kinds import TOOLS, is_open, kind
from training.games.household.settings import Home
from training.games.household.state import State
from training.games.household.world import World
from training.records import ArgValue

Command = tuple[str, Mapping[str, ArgValue]]
"""An action and its arguments."""


def plan(home: Home, turn_limit: int) -> tuple[Command, ...]:
    """Return a shortest plan; raise `BadInput` if there is none of at most `turn_limit` turns.

    The plan was played: after its last command the task is done.
    """
    shortest = min(_plans(home), key=len, default=())
    world = World(home)
    for action, args in shortest:
        world.act(action, args)
    if not world.won or len(shortest) > turn_limit:
        raise BadInput(f"no plan does the task within {turn_limit} turns", "settings.home")
    return tuple(shortest)


def _plans(home: Home) -> Iterator[Sequence[Command]]:
    """Yield a plan for every choice of objects, places and tools that do the task."""
    places = {thing: place for place, things in home.receptacles.items() for thing in things}
    objects = [thing for thing in places if kind(thing) == home.task.object]
    targets = [name for name in home.receptacles if kind(name) == home.task.receptacle]
    tool = TOOLS.get(home.task.family)
    if home.task.family == "look_under_light":
        lamps = [thing for thing in places if kind(thing) == home.task.receptacle]
        for thing, lamp in product(objects, lamps):
            yield _Steps(places).take(thing).toggle(lamp).steps
    elif home.task.family == "two_objects":
        for target in targets:
            there = sum(places[thing] == target for thing in objects)
            for moved in permutations((thing for thing in objects if places[thing] != target), max(0, 2 - there)):
                steps = _Steps(places)
                for thing in moved:
                    steps.take(thing).put(thing, target)
                yield steps.steps
    elif tool is None:
        for thing, target in product(objects, targets):
            yield _Steps(places).take(thing).put(thing, target).steps
    else:
        tools = [name for name in home.receptacles if kind(name) == tool]
        for thing, target, at in product(objects, targets, tools):
            yield _Steps(places).take(thing).change(home.task.family, thing, at).put(thing, target).steps


class _Steps:
    """Collects commands; every part begins with what it needs: to be there, and that it is open."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self.steps: list[Command] = []
        self._places = places
        self._state = State()

    def take(self, thing: str) -> _Steps:
        """Take an object from where it is at first."""
        place = self._places[thing]
        self._reach(place)
        return self._do("take", object=thing, receptacle=place)

    def put(self, thing: str, target: str) -> _Steps:
        """Put an object down."""
        self._reach(target)
        return self._do("put", object=thing, receptacle=target)

    def change(self, change: str, thing: str, tool: str) -> _Steps:
        """Clean, heat or cool an object, for which a tool need not be open."""
        self._go_to(tool)
        return self._do(change, object=thing, receptacle=tool)

    def toggle(self, lamp: str) -> _Steps:
        """Turn on a lamp."""
        self._reach(self._places[lamp])
        return self._do("toggle", object=lamp)

    def _reach(self, receptacle: str) -> None:
        self._go_to(receptacle)
        if not is_open(receptacle, self._state.opened):
            self._do("open", receptacle=receptacle)

    def _go_to(self, receptacle: str) -> None:
        if self._state.at != receptacle:
            self._do("go_to", receptacle=receptacle)

    def _do(self, action: str, **args: str) -> _Steps:
        self._state.apply(action, args)
        self.steps.append((action, args))
        return self
