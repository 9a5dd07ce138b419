"""The state of the rooms: every player's location, activity and life. This module passes rounds; it has no speech.

Orders must be legal, which the game has checked. Changes are returned as events, each with its witnesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from training.games.among_us.settings import AmongUsSettings, Room
from training.records import Seat

START: Room = (0, 0)
"""The room in which everybody begins and meets."""
STEPS: Mapping[str, Room] = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
OPPOSITE: Mapping[str, str] = {"north": "south", "east": "west", "south": "north", "west": "east"}

Doing = Literal["deciding", "waiting", "working", "walking"]
Kind = Literal["kills", "leaves", "comes", "begins", "done"]
_DOING: Mapping[str, Doing] = {"go": "walking", "task": "working", "wait": "waiting"}


@dataclass(slots=True)
class Person:
    """One player in the rooms. `until` is the round in which its current activity ends."""

    tasks: list[Room]
    room: Room = START
    alive: bool = True
    doing: Doing = "deciding"
    until: int = 0
    toward: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """An event in a room with its witnesses. `who` caused it; `what` is a direction; `victim` is set for a kill."""

    kind: Kind
    room: Room
    who: Seat
    witnesses: frozenset[Seat] = frozenset()
    what: str = ""
    victim: Seat | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A player's decision: `go` with a direction, `task` or `wait`."""

    action: str
    direction: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where everybody was in a round who lived and was not between two rooms; `meeting`: at the start of one."""

    round: int
    rooms: Mapping[Seat, Room]
    meeting: bool = False


class World:
    """The state of the rooms; `deciding` returns the players who must choose."""

    def __init__(self, settings: AmongUsSettings, imposter: Seat, tasks: Sequence[Sequence[Room]]) -> None:
        self.settings = settings
        self.imposter = imposter
        self.people = [Person(tasks=[] if seat == imposter else list(rooms)) for seat, rooms in enumerate(tasks)]
        self.bodies: dict[Seat, Room] = {}
        self.round = 0
        self.ready = settings.cooldown
        """The first round in which the imposter may kill."""
        self.past: list[Moment] = []
        """One entry per round, and one more for every meeting."""
        self.events: list[tuple[int, Event]] = []
        """Everything that happened, with the round."""
        self._remember()

    # --- looking ---

    def living(self) -> list[Seat]:
        """Return the living players in seat order."""
        return [seat for seat, person in enumerate(self.people) if person.alive]

    def crew(self) -> list[Seat]:
        """Return the living crewmates."""
        return [seat for seat in self.living() if seat != self.imposter]

    def present(self, room: Room) -> list[Seat]:
        """Return the living players in `room`; a player between two rooms is in neither."""
        return [s for s, p in enumerate(self.people) if p.alive and p.room == room and p.doing != "walking"]

    def awake(self, seat: Seat) -> bool:
        """Return whether `seat` sees its room: crewmates at work and people on the way see nothing."""
        person = self.people[seat]
        return person.alive and (
            person.doing in ("deciding", "waiting") or (person.doing == "working" and seat == self.imposter)
        )

    def deciding(self) -> frozenset[Seat]:
        """Return the players who must choose."""
        return frozenset(s for s, p in enumerate(self.people) if p.alive and p.doing == "deciding")

    def bodies_in(self, room: Room) -> list[Seat]:
        """Return the dead whose bodies are in `room`."""
        return [seat for seat, where in self.bodies.items() if where == room]

    def victims(self) -> list[Seat]:
        """Return the players that the imposter may kill now."""
        if self.round < self.ready:
            return []
        return [seat for seat in self.present(self.people[self.imposter].room) if seat != self.imposter]

    def tasks_left(self) -> int:
        """Return the number of open tasks of the living."""
        return sum(len(person.tasks) for person in self.people if person.alive)

    # --- changing ---

    def gather(self) -> None:
        """Move the living to the first room, where they must choose; clear the bodies; restart the kill's cooldown."""
        self.bodies.clear()
        self.ready = self.round + self.settings.cooldown
        for person in self.people:
            person.room, person.doing = START, "deciding"
        self._remember(meeting=True)

    def kill(self, victim: Seat) -> Event:
        """Kill `victim`; everybody awake in the room, including the victim, witnesses it."""
        event = self._event("kills", self.imposter, victim=victim)
        self.people[victim].alive = False
        self.bodies[victim] = event.room
        self.ready = self.round + self.settings.cooldown
        return event

    def begin(self, orders: Mapping[Seat, Order]) -> list[Event]:
        """Start the ordered activities simultaneously; players who leave or work do not see the others' activities."""
        for seat, order in orders.items():
            person = self.people[seat]
            person.doing, person.toward = _DOING[order.action], order.direction
            person.until = self.round + (self.settings.wait if order.action == "wait" else self.settings.task_time)
        events = []
        for seat, order in orders.items():
            if order.action == "go":
                events.append(self._event("leaves", seat, what=order.direction))
            elif order.action == "task":
                events.append(self._event("begins", seat))
        return events

    def pass_round(self) -> list[Event]:
        """Pass one round: players arrive, finish tasks, and must choose again after waiting."""
        self.round += 1
        due = [s for s, p in enumerate(self.people) if p.alive and p.doing != "deciding" and p.until == self.round]
        arriving = [seat for seat in due if self.people[seat].doing == "walking"]
        for seat in arriving:
            self.people[seat].room = beyond(self.people[seat].room, self.people[seat].toward)
        events = [self._event("comes", seat, what=OPPOSITE[self.people[seat].toward]) for seat in arriving]
        for seat in due:
            person = self.people[seat]
            if person.doing == "working" and seat != self.imposter:
                person.tasks.remove(person.room)
                events.append(Event("done", person.room, seat))
            person.doing = "deciding"
        self._remember()
        hunter = self.people[self.imposter]
        if hunter.doing == "waiting" and self.round == self.ready and self.victims():
            hunter.doing = "deciding"  # what it may do has changed
        return events

    def _event(self, kind: Kind, who: Seat, what: str = "", victim: Seat | None = None) -> Event:
        """Return an event in the room of `who`; witnesses who were waiting must choose again."""
        room = self.people[who].room
        witnesses = frozenset(seat for seat in self.present(room) if seat != who and self.awake(seat))
        for seat in witnesses:
            if self.people[seat].doing == "waiting":
                self.people[seat].doing = "deciding"
        event = Event(kind, room, who, witnesses, what, victim)
        self.events.append((self.round, event))
        return event

    def _remember(self, *, meeting: bool = False) -> None:
        rooms = {s: p.room for s, p in enumerate(self.people) if p.alive and p.doing != "walking"}
        self.past.append(Moment(self.round, rooms, meeting))


@lru_cache(maxsize=1024)
def exits(width: int, height: int, room: Room) -> tuple[str, ...]:
    """Return the directions from `room` that lead to another room of the grid."""
    after = {direction: beyond(room, direction) for direction in STEPS}
    return tuple(d for d, (column, row) in after.items() if 0 <= column < width and 0 <= row < height)


def beyond(room: Room, direction: str) -> Room:
    """Return the room next to `room`."""
    return room[0] + STEPS[direction][0], room[1] + STEPS[direction][1]
