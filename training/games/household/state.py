"""Where things are and what was done to them, and how far a task is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from training.games.household.kinds import kind
from training.games.household.settings import Task
from training.records import ArgValue

MADE: Mapping[str, str] = {"clean": "clean", "heat": "hot", "cool": "cool"}
"""What each change makes an object."""
_OPPOSITE = {"hot": "cool", "cool": "hot"}


@dataclass
class State:
    """The state of a household, as far as it is known to whoever keeps it.

    `places` is the receptacle of every object that lies somewhere, `carried` the object in the hand, `at` the
    receptacle in front (both empty at first), `opened` the open ones of those that can be closed. `made` says what
    became of an object: clean, hot, cool. `lit` are the lamps that are on.
    """

    places: dict[str, str] = field(default_factory=dict)
    at: str = ""
    carried: str = ""
    opened: set[str] = field(default_factory=set)
    made: dict[str, set[str]] = field(default_factory=dict)
    lit: set[str] = field(default_factory=set)

    def apply(self, action: str, args: Mapping[str, ArgValue]) -> None:
        """Apply an action that is possible."""
        thing, receptacle = str(args.get("object", "")), str(args.get("receptacle", ""))
        match action:
            case "go_to":
                self.at = receptacle
            case "take":
                self.places.pop(thing, None)
                self.carried = thing
            case "put":
                self.places[thing] = receptacle
                self.carried = ""
            case "open":
                self.opened.add(receptacle)
            case "close":
                self.opened.discard(receptacle)
            case "toggle":
                self.places.setdefault(thing, self.at)
                self.lit ^= {thing}
            case "clean" | "heat" | "cool":
                made = self.made.setdefault(thing, set())
                made.discard(_OPPOSITE.get(MADE[action], ""))
                made.add(MADE[action])

    def inside(self, receptacle: str) -> tuple[str, ...]:
        """Return the objects in or on a receptacle."""
        return tuple(thing for thing, place in self.places.items() if place == receptacle)


def share(task: Task, state: State) -> float:
    """Return the share of a task's subgoals that are reached, 1 where it is done.

    An object of the kind must be carried, have become clean, hot or cool where the task asks for it, and lie where it
    should, which counts as carried too; the one that has come furthest counts. Of two objects each counts, if they lie
    in or on the same receptacle. Under a lamp the object must be carried, a lamp be on, and both be at one place.
    """
    if task.family == "look_under_light":
        carried = kind(state.carried) == task.object
        lamps = [lamp for lamp in state.lit if kind(lamp) == task.receptacle]
        beside = any(state.places[lamp] == state.at for lamp in lamps)
        return (carried + bool(lamps) + (carried and beside)) / 3
    if task.family == "two_objects":
        lying = (place for thing, place in state.places.items() if kind(thing) == task.object)
        together = Counter(place for place in lying if kind(place) == task.receptacle)
        done = min(2, max(together.values(), default=0))
        return (2 * done + (done < 2 and kind(state.carried) == task.object)) / 4
    return _furthest(task, state)


def _furthest(task: Task, state: State) -> float:
    """Return the share of the object that has come furthest, in the families with one object."""
    made = MADE.get(task.family)
    best = 0
    for thing in (*state.places, state.carried):
        if kind(thing) == task.object:
            changed = made is not None and made in state.made.get(thing, ())
            placed = kind(state.places.get(thing, "")) == task.receptacle and (changed or made is None)
            best = max(best, (placed or thing == state.carried) + changed + placed)
    return best / (2 if made is None else 3)
