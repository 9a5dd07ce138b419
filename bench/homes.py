"""A kitchen for `bench.epo` where everything begins at the same place, with tasks of the household's six families.

A strategist that has often been there can know where things are, and has to read what the task is.
"""

from __future__ import annotations

from collections.abc import Iterator

from training import players, samples
from training.games.household.generated import FAMILIES
from training.games.household.kinds import OPENABLE, kind
from training.games.household.settings import Home, Task
from training.games.household.words import contents
from training.players.base import Reply
from training.players.random import RandomPlayer
from training.records import Message, Observation, Scenario, Seat, Trace
from training.seeding import derive, rng

KITCHEN = {
    "cabinet 1": ("plate 1",),
    "countertop 1": ("mug 1", "egg 1"),
    "diningtable 1": ("desklamp 1",),
    "fridge 1": ("apple 1", "egg 2"),
    "microwave 1": (),
    "sinkbasin 1": ("apple 2", "mug 2", "plate 2"),
}
TABLE, LAMP = "diningtable", "desklamp"
THINGS = sorted({kind(thing) for listed in KITCHEN.values() for thing in listed} - {LAMP})
TASK_WORDS = ("clean", "cool", "heat", "hot", "light", "two")
"""What tells the families apart in the sentence with the task."""
TURNS = 15


def chores() -> list[Scenario]:
    """Return 24 games: a task of every family for each kind of thing, which goes to the table or under its lamp."""
    first = samples.load("household")[0]
    made = []
    for family in FAMILIES:
        place = LAMP if family == "look_under_light" else TABLE
        for name in THINGS:
            home = Home(receptacles=KITCHEN, task=Task(family=family, object=name, receptacle=place))
            settings = {"home": home.model_dump(), "turn_limit": TURNS}
            made.append(first.model_copy(update={"id": f"{family}-{name}", "settings": settings}))
    return made


class Resident:
    """Knows where everything is; does the task as the script does in `skill` % of its turns, else moves at random."""

    def __init__(self, scenario: Scenario, seat: Seat, skill: int) -> None:
        self._script, self._random, self._skill = players.make("scripted", scenario, seat), RandomPlayer(), skill

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return a command."""
        if rng(seed, "skill").random() * 100 >= self._skill:
            return await self._random.act(seat, observation, derive(seed, "command"))
        rules, room, *rest = observation.messages
        known = observation.model_copy(update={"messages": (rules, room, *memories(), *rest)})
        return await self._script.act(seat, known, derive(seed, "command"))

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()


def memories() -> Iterator[Message]:
    """Yield what each receptacle contains, in the game's words."""
    for place, things in KITCHEN.items():
        yield Message(author=None, text=contents(place, things, openable=kind(place) in OPENABLE))


def words() -> tuple[str, ...]:
    """Return the names of receptacles and objects and the words of the tasks, longest first."""
    names = {kind(name) for place, listed in KITCHEN.items() for name in (place, *listed)}
    return tuple(sorted({*names, *TASK_WORDS}, key=lambda name: (-len(name), name)))
