"""Homes made from a seed: a task, a room with typical receptacles, objects where they are typically found.

The same settings and seed give the same home on every machine and in every release: stored games hold the seed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from random import Random
from typing import NamedTuple

from training.errors import BadInput
from training.games.household.kinds import LAMP, OBJECTS, PORTABLE, RECEPTACLES, TOOLS, Room, kind
from training.games.household.planner import Command, plan
from training.games.household.settings import Family, Home, HouseholdSettings, Task
from training.seeding import rng

FAMILIES: tuple[Family, ...] = ("pick_and_place", "two_objects", "clean", "heat", "cool", "look_under_light")
MOST_COPIES = 3
"""Objects of one kind that the task does not need, as long as there are other kinds."""
TEST_EVERY = 5
"""One of this number of tasks is for tests."""
RANGE = (15, 35)
"""Receptacles of a room."""


class Entry(NamedTuple):
    """A task in a room."""

    room: Room
    task: Task


@lru_cache(maxsize=1)
def tasks() -> tuple[Entry, ...]:
    """Return all tasks, in a fixed order."""
    return tuple(Entry(room, task) for family in FAMILIES for room in RECEPTACLES for task in _of_room(family, room))


def _of_room(family: Family, room: Room) -> Iterable[Task]:
    """Yield the tasks of a family in a room: every object that is found there, to every other place."""
    tool = TOOLS.get(family)
    if tool is not None and tool not in RECEPTACLES[room]:
        return
    for name in sorted(PORTABLE):
        if room not in OBJECTS[name].rooms or (tool is not None and family not in OBJECTS[name].changes):
            continue
        places = [place for place in OBJECTS[name].places if place in RECEPTACLES[room]]
        if family == "look_under_light":
            if room in OBJECTS[LAMP].rooms:
                yield Task(family=family, object=name, receptacle=LAMP)
        elif len(places) > 1:
            yield from (Task(family=family, object=name, receptacle=place) for place in places if place != tool)


def generate(settings: HouseholdSettings, seed: int) -> tuple[Home, tuple[Command, ...]]:
    """Return a home and a shortest plan for it; raise `BadInput` for settings that fit no task."""
    return _generate(
        settings.family,
        settings.room,
        settings.receptacles,
        settings.distractors,
        settings.split,
        settings.turn_limit,
        seed,
    )


@lru_cache(maxsize=256)
def _generate(
    family: str, room: str, receptacles: int | None, distractors: int, split: str, turn_limit: int, seed: int
) -> tuple[Home, tuple[Command, ...]]:
    chance = rng(seed, "household")
    entry = _drawn(family, room, receptacles, split, chance)
    names = _receptacles(entry, receptacles, chance)
    things = _placed(entry.task, entry.room, names, distractors, chance)
    home = Home(receptacles={name: tuple(things.get(name, ())) for name in names}, task=entry.task)
    return home, plan(home, turn_limit)


def _drawn(family: str, room: str, receptacles: int | None, split: str, chance: Random) -> Entry:
    """Return a task: first its family is drawn, then the room, then one of the tasks that are left."""
    left = [
        entry
        for at, entry in enumerate(tasks())
        if family in ("any", entry.task.family)
        and room in ("any", entry.room)
        and (split == "all" or (at % TEST_EVERY == 0) == (split == "test"))
    ]
    if not left:
        raise BadInput(f"a {room.replace('_', ' ')} has no tasks of the family {family}", "settings.room")
    if receptacles is not None:
        ranges = {entry: _range(entry) for entry in left}
        left = [entry for entry, (least, most) in ranges.items() if least <= receptacles <= most]
        if not left:
            least, most = min(low for low, _ in ranges.values()), max(high for _, high in ranges.values())
            raise BadInput(f"rooms with such tasks have at least {least} and at most {most}", "settings.receptacles")
    drawn_family = chance.choice(list(dict.fromkeys(entry.task.family for entry in left)))
    left = [entry for entry in left if entry.task.family == drawn_family]
    drawn_room = chance.choice(list(dict.fromkeys(entry.room for entry in left)))
    return chance.choice([entry for entry in left if entry.room == drawn_room])


def _range(entry: Entry) -> tuple[int, int]:
    """Return the least and the most receptacles of a room in which there is the one that a task needs."""
    ranges = RECEPTACLES[entry.room]
    missing = ranges.get(entry.task.receptacle, (1, 1))[0] == 0
    least, most = (sum(bounds[at] for bounds in ranges.values()) for at in (0, 1))
    return max(RANGE[0], least + missing), min(RANGE[1], most)


def _receptacles(entry: Entry, number: int | None, chance: Random) -> tuple[str, ...]:
    """Return the receptacles by name: the least of each kind, then others by chance up to the number."""
    ranges = RECEPTACLES[entry.room]
    counts = {name: least for name, (least, _) in ranges.items()}
    if entry.task.receptacle in counts:
        counts[entry.task.receptacle] = max(1, counts[entry.task.receptacle])
    wanted = chance.randint(*_range(entry)) if number is None else number
    while sum(counts.values()) < wanted:
        counts[chance.choice([name for name, (_, upper) in ranges.items() if counts[name] < upper])] += 1
    return tuple(f"{name} {number}" for name in sorted(counts) for number in range(1, counts[name] + 1))


def _placed(task: Task, room: Room, names: tuple[str, ...], distractors: int, chance: Random) -> dict[str, list[str]]:
    """Return the objects of each receptacle; numbers of a kind are in no order."""
    least = 2 if task.family == "two_objects" else 1
    wanted = [task.object] * (least + chance.randint(0, 1))
    if room in OBJECTS[LAMP].rooms:
        wanted += [LAMP] * (chance.randint(1, 2) if task.family == "look_under_light" else 1)
    others = [name for name in sorted(PORTABLE) if room in OBJECTS[name].rooms and name != task.object]
    drawn: list[str] = []
    left: list[str] = []
    while len(drawn) < distractors:
        left = left or list(others)
        name = left.pop(chance.randrange(len(left)))
        drawn += [name] * min(chance.randint(1, MOST_COPIES), distractors - len(drawn))
    counts = Counter(wanted + drawn)
    numbers = {name: chance.sample(range(1, 1 + count), count) for name, count in counts.items()}
    things: dict[str, list[str]] = {}
    for name in wanted + drawn:
        barred = task.receptacle if name == task.object and task.family in ("pick_and_place", "two_objects") else ""
        things.setdefault(_place(name, names, barred, chance), []).append(f"{name} {numbers[name].pop()}")
    for listed in things.values():
        chance.shuffle(listed)
    return things


def _place(name: str, receptacles: tuple[str, ...], barred: str, chance: Random) -> str:
    """Return a receptacle, drawn by how typical it is."""
    weights = OBJECTS[name].places
    fitting = [receptacle for receptacle in receptacles if kind(receptacle) in weights and kind(receptacle) != barred]
    return chance.choices(fitting, [weights[kind(receptacle)] for receptacle in fitting])[0]
