"""The scripted player: it looks for what the task needs where that is typically found, and does the task.

It reads its observation alone: the task, and what it has seen in the room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from training.games.actions import write
from training.games.household.kinds import LAMP, OBJECTS, OPENABLE, TOOLS, is_open, kind
from training.games.household.settings import Family, Task
from training.games.household.state import MADE, State
from training.games.household.words import YOUR_TASK
from training.players.scripted import Script, offered
from training.records import ArgValue, Observation

_PLACE = r"(?:in|on|in/on) (?:the )?(?P<receptacle>\w+)"
_CHANGES = {"clean": "clean", "hot": "heat", "heat": "heat", "cool": "cool"}
_TASKS: Sequence[tuple[re.Pattern[str], Family | None]] = (
    (re.compile(rf"(?P<how>clean|heat|cool) some (?P<object>\w+) and put it {_PLACE}"), None),
    (re.compile(rf"put a (?P<how>clean|hot|cool) (?P<object>\w+) {_PLACE}"), None),
    (re.compile(rf"(?:put|find) two (?P<object>\w+) (?:and put them )?{_PLACE}"), "two_objects"),
    (re.compile(r"(?:look at|examine the) (?P<object>\w+) (?:under|with) the (?P<receptacle>\w+)"), "look_under_light"),
    (re.compile(rf"put (?:an?|some) (?P<object>\w+) {_PLACE}"), "pick_and_place"),
)
_NAME = r"\w+ \d+"
_THING = re.compile(rf"\b(?:an?) ({_NAME})")
_CONTENTS = re.compile(rf"(?:On the ({_NAME})|The ({_NAME}) is open\. In it), you see (.*?)\.")
_EVENTS: Sequence[tuple[re.Pattern[str], str, tuple[str, ...]]] = (
    (re.compile(rf"You arrive at (?:loc \d+\. )?({_NAME})\."), "go_to", ("receptacle",)),
    (re.compile(rf"You open the ({_NAME})\."), "open", ("receptacle",)),
    (re.compile(rf"You close the ({_NAME})\."), "close", ("receptacle",)),
    (re.compile(rf"You pick up the ({_NAME}) from the ({_NAME})\."), "take", ("object", "receptacle")),
    (re.compile(rf"You (?:put|move) the ({_NAME}) (?:in/on|to) the ({_NAME})\."), "put", ("object", "receptacle")),
    (re.compile(rf"You clean the ({_NAME}) using the ({_NAME})\."), "clean", ("object", "receptacle")),
    (re.compile(rf"You heat the ({_NAME}) using the ({_NAME})\."), "heat", ("object", "receptacle")),
    (re.compile(rf"You cool the ({_NAME}) using the ({_NAME})\."), "cool", ("object", "receptacle")),
)
"""What the game says of a command that works, except on or off."""
_SWITCH = re.compile(rf"You turn (on|off) the ({_NAME})\.")


def read_task(text: str) -> Task | None:
    """Return the task that a text names after `words.YOUR_TASK`; None if it is none of the known sentences."""
    sentence = text.partition(YOUR_TASK)[2].partition("\n")[0]
    for pattern, family in _TASKS:
        if match := pattern.match(sentence):
            fields = match.groupdict()
            return Task(
                family=family or _CHANGES[fields["how"]],  # type: ignore[arg-type]  # the pattern allows no other
                object=fields["object"],
                receptacle=fields["receptacle"],
            )
    return None


class Knowledge:
    """What a seat knows of the room: `state` of what it has seen, the `receptacles`, and those it has `seen` inside."""

    def __init__(self, messages: Iterable[str]) -> None:
        rooms, *rest = messages
        self.receptacles: tuple[str, ...] = tuple(_THING.findall(rooms.partition("you see")[2]))
        self.seen: set[str] = set()
        self.state = State()
        for text in rest:
            self._read(text)

    def _read(self, text: str) -> None:
        if match := _SWITCH.match(text):
            (self.state.lit.add if match[1] == "on" else self.state.lit.discard)(match[2])
        for pattern, action, names in _EVENTS:
            if match := pattern.match(text):
                self.state.apply(action, dict(zip(names, match.groups(), strict=True)))
        for on, inside, things in _CONTENTS.findall(text):
            self.seen.add(on or inside)
            self.state.places |= dict.fromkeys(_THING.findall(things), on or inside)

    def where(self, wanted: str) -> list[str]:
        """Return the objects of a kind that lie somewhere, those in front first, then those that take fewer turns."""
        objects = [thing for thing in self.state.places if kind(thing) == wanted]
        return sorted(objects, key=lambda thing: self._turns(self.state.places[thing]))

    def nearest(self, wanted: str) -> list[str]:
        """Return the receptacles of a kind in the same order."""
        return sorted((name for name in self.receptacles if kind(name) == wanted), key=self._turns)

    def _turns(self, receptacle: str) -> int:
        return (receptacle != self.state.at) + (not is_open(receptacle, self.state.opened))

    def unseen(self, wanted: Iterable[str]) -> str:
        """Return the receptacle to look into next for objects of some kinds; empty where everything was seen.

        It has the highest chance to hold one, for each turn that it takes.
        """
        left = [name for name in self.receptacles if name not in self.seen]
        if not left:
            return ""
        kinds = [OBJECTS[name].places for name in wanted if name in OBJECTS]

        def worth(name: str) -> float:
            turns = self._turns(name) or 1
            return sum(places.get(kind(name), 0) for places in kinds) / turns

        return max(left, key=worth)


class HouseholdScript(Script):
    """Plays the seat."""

    def answer(self, observation: Observation, chance: Random) -> str:
        rules, *shown = [message.text for message in observation.messages if message.author is None]
        known = Knowledge(shown)
        task = read_task(rules)
        action, args = _explore(known, ()) if task is None else _next(task, known)
        if any(value not in known.receptacles for name, value in args.items() if name == "receptacle"):
            action, args = "look", {}
        command = offered(observation, action)
        assert command is not None
        return write(command, args)


Step = tuple[str, Mapping[str, ArgValue]]
LOOK: Step = ("look", {})


def _next(task: Task, known: Knowledge) -> Step:
    """Return the next command."""
    state = known.state
    if state.carried and kind(state.carried) != task.object:
        return _put_away(known)
    if task.family == "look_under_light":
        return _under_light(task, known)
    made = MADE.get(task.family)
    if state.carried:
        if made is not None and made not in state.made.get(state.carried, ()):
            return _change(task.family, known)
        return _bring(task, known)
    if misplaced := [thing for thing in known.where(task.object) if not _there(thing, task, known)]:
        return _take(misplaced[0], known)
    return _explore(known, (task.object,))


def _there(thing: str, task: Task, known: Knowledge) -> bool:
    """Return whether an object need not be moved: it lies where it should, as it should be."""
    if task.family == "two_objects":
        return known.state.places[thing] == _target(task, known)
    return task.family == "pick_and_place" and kind(known.state.places[thing]) == task.receptacle


def _target(task: Task, known: Knowledge) -> str:
    """Return where to put: where one of two objects lies already, else the nearest place."""
    targets = known.nearest(task.receptacle)
    lying = [known.state.places[thing] for thing in known.where(task.object)]
    return next(
        (name for name in targets if task.family == "two_objects" and name in lying), targets[0] if targets else ""
    )


def _bring(task: Task, known: Knowledge) -> Step:
    target = _target(task, known)
    return _reach(target, known) or ("put", {"object": known.state.carried, "receptacle": target})


def _take(thing: str, known: Knowledge) -> Step:
    place = known.state.places[thing]
    return _reach(place, known) or ("take", {"object": thing, "receptacle": place})


def _change(family: Family, known: Knowledge) -> Step:
    tools = known.nearest(TOOLS[family])
    if not tools:
        return LOOK
    if known.state.at != tools[0]:
        return "go_to", {"receptacle": tools[0]}
    return family, {"object": known.state.carried, "receptacle": tools[0]}


def _under_light(task: Task, known: Knowledge) -> Step:
    """Fetch the object and turn a lamp on beside it; look for what is not found yet."""
    objects, lamps = known.where(task.object), known.where(task.receptacle)
    if not known.state.carried and objects:
        return _take(objects[0], known)
    if known.state.carried and lamps:
        lit = [lamp for lamp in lamps if lamp in known.state.lit]
        lamp = (lit or lamps)[0]
        return _reach(known.state.places[lamp], known) or ("toggle", {"object": lamp})
    missing = () if known.state.carried else (task.object,)
    return _explore(known, (*missing, *(() if lamps else (LAMP,))))


def _explore(known: Knowledge, wanted: Iterable[str]) -> Step:
    """Look into a receptacle that was not seen inside yet."""
    unseen = known.unseen(wanted)
    return _reach(unseen, known) or LOOK if unseen else LOOK


def _put_away(known: Knowledge) -> Step:
    """Put down an object that the task does not need, as near as possible."""
    carried = known.state.carried
    places = OBJECTS[kind(carried)].places if kind(carried) in OBJECTS else {}
    fitting = [name for name in known.receptacles if kind(name) in places] or list(known.receptacles)
    target = min(fitting, key=lambda name: (name != known.state.at, kind(name) in OPENABLE))
    return _reach(target, known) or ("put", {"object": carried, "receptacle": target})


def _reach(receptacle: str, known: Knowledge) -> Step | None:
    """Return what must be done before something can be taken from a receptacle or put into it."""
    if receptacle and known.state.at != receptacle:
        return "go_to", {"receptacle": receptacle}
    if not is_open(receptacle, known.state.opened):
        return "open", {"receptacle": receptacle}
    return None
