"""A script's knowledge of a game of Among Us, parsed from its observation alone; other lines are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from training.games.among_us.settings import Room
from training.records import Observation, Seat

SAW_KILL = 100.0
LIE, WITNESS, BESIDE = 5.0, 4.0, 3.0
"""Suspicion of a player who contradicted the facts, whom somebody saw kill, or who was near a body without a report."""
LEFT, TOLD, SEEN, NAMED = 2.0, 1.0, 1.0, 0.5
"""Suspicion of a player who left a body's room, as seen or as reported by others; was there; is merely suspected."""
LONG_AGO = 12
"""Number of rounds after which sightings are ignored."""

_ROOM = r"room \((\d{1,4}),(\d{1,4})\)"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A player was in a room in a round. `left` is the direction in which it left; `body`: a body lay there."""

    round: int
    room: Room
    name: str
    left: str = ""
    body: bool = False


@dataclass(slots=True)
class Memory:
    """Everything that a seat has seen and heard; the last fields are about the current meeting."""

    name: str
    names: Sequence[str]
    imposter: bool = False
    round: int = 0
    room: Room = (0, 0)
    tasks: list[Room] = field(default_factory=list)
    around: list[str] = field(default_factory=list)
    asleep: set[str] = field(default_factory=set)
    body: bool = False
    way: list[tuple[int, Room]] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    kills: list[Sighting] = field(default_factory=list)
    killers: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, Room] = field(default_factory=dict)
    reporters: list[str] = field(default_factory=list)
    living: list[str] = field(default_factory=list)
    claims: list[tuple[str, str]] = field(default_factory=list)
    began: int = 0

    def suspicion(self) -> dict[str, float]:
        """Return each other player's suspicion in points; 0 = no evidence.

        A player who reported a body has none, because the imposter cannot report.
        """
        points = dict.fromkeys((name for name in self.names if name != self.name), 0.0)
        for sighting in self.sightings:
            lies_there = sighting.room in self.bodies.values() and sighting.name not in self.bodies
            if sighting.name in points and lies_there and self.began <= sighting.round >= self.round - LONG_AGO:
                weight = BESIDE if sighting.body else LEFT if sighting.left else SEEN
                points[sighting.name] = max(points[sighting.name], weight)
        for name in self.killers:
            points[name] = SAW_KILL
        for speaker, named, weight in {entry for claim in self.claims for entry in self._accusations(*claim)}:
            if speaker in points and named in points:
                points[named] += weight
        return {name: 0.0 if name in self.reporters else weight for name, weight in points.items()}

    def mentioned(self, line: str) -> bool:
        """Return whether a line names this seat."""
        return re.search(rf"(?<!\w){re.escape(self.name)}(?!\w)", line) is not None

    def _accusations(self, speaker: str, line: str) -> Iterator[tuple[str, str, float]]:
        """Yield (speaker, accused player, points) for a line of the meeting."""
        killer = self._after(r"I saw NAME kill", line)
        leaver = self._after(r"I saw NAME leave", line)
        suspect = self._after(r"(?:I will vote for|I suspect|It is) NAME", line)
        if killer and killer in (self.name, *self.reporters):
            yield speaker, speaker, LIE
        elif killer:
            yield speaker, killer, WITNESS
        if leaver:
            yield speaker, leaver, TOLD
        if suspect and suspect in self.reporters:
            yield speaker, speaker, TOLD
        elif suspect and not (killer or leaver):
            yield speaker, suspect, NAMED
        company = rf"(?:{_any(self.names)}|[^.])*"  # up to a full stop that is no part of a name
        if claim := re.search(rf"in round (\d{{1,4}}) I was in {_ROOM}(?: with ({company}))?", line):
            at, room = int(claim.group(1)), (int(claim.group(2)), int(claim.group(3)))
            if self._contradicts(speaker, at, room):
                yield speaker, speaker, LIE
            if speaker in self.reporters and room in self.bodies.values():
                for name in re.findall(_any(self.names), claim.group(4) or ""):
                    yield speaker, name, BESIDE

    def _contradicts(self, name: str, at: int, room: Room) -> bool:
        """Return whether this seat saw `name` elsewhere in that round, or was in that room then without seeing it."""
        sightings = [sighting for sighting in self.sightings if sighting.name == name and sighting.round == at]
        if sightings:
            return room not in [sighting.room for sighting in sightings]
        return (at, room) in self.way

    def _after(self, pattern: str, line: str) -> str:
        match = re.search(pattern.replace("NAME", f"({_any(self.names)})"), line)
        return match.group(1) if match else ""


def _any(names: Sequence[str]) -> str:
    """Return a pattern for one of these names as a whole word."""
    return rf"(?<!\w)(?:{'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})(?!\w)"


def remember(observation: Observation, seat: Seat, names: Sequence[str]) -> Memory:
    """Return the memory of `seat` after reading its observation."""
    memory = Memory(names[seat], names)
    rules = observation.messages[0].text
    memory.imposter = f"You are {names[seat]}, the imposter" in rules
    for message in observation.messages[1:]:
        if message.author is not None:
            if message.channel == "public":
                memory.claims.append((names[message.author], message.text))
        elif " you are in room " in message.text:
            _status(memory, message.text)
        elif message.channel == "room":
            _event(memory, message.text)
        else:
            _meeting(memory, message.text)
    return memory


def _status(memory: Memory, line: str) -> None:
    next_sentence = "(?:Here lies|Your open tasks|You may)"  # a name may contain a full stop, too
    where = re.match(rf"Round (\d+): you are in {_ROOM}, (?:with (.*?)|alone)\. {next_sentence}\b", line)
    if not where:
        return
    at, column, row, company = where.groups()
    memory.round, memory.room = int(at), (int(column), int(row))
    people = re.findall(rf"({_any(memory.names)})( \(at work\))?(?:,| and |$)", company or "")
    memory.around = [name for name, _ in people]
    memory.asleep = {name for name, working in people if working}
    memory.way.append((memory.round, memory.room))
    memory.body = " Here lies the body of " in line
    memory.sightings += [Sighting(memory.round, memory.room, name, body=memory.body) for name in memory.around]
    if tasks := re.search(r"Your open tasks: (.*?)\.", line):
        memory.tasks = [(int(a), int(b)) for a, b in re.findall(r"\((\d+),(\d+)\)", tasks.group(1))]


def _event(memory: Memory, line: str) -> None:
    name = f"({_any(memory.names)})"
    event = re.match(rf"Round (\d+), {_ROOM}: {name} (kills {name}|leaves to the (\w+)|comes|begins)", line)
    if not event:
        return
    at, column, row, actor, _, victim, direction = event.groups()
    sighting = Sighting(int(at), (int(column), int(row)), actor, left=direction or "")
    memory.sightings.append(sighting)
    if victim:
        memory.kills.append(sighting)
        memory.killers[actor] = victim


def _meeting(memory: Memory, line: str) -> None:
    """Update the memory by a meeting's line: a report opens the meeting and clears the claims; the votes close it."""
    name = f"({_any(memory.names)})"
    reports = re.findall(rf"{name} reports the body of {name} in {_ROOM}", line)
    if reports:
        memory.bodies = {body: (int(column), int(row)) for _, body, column, row in reports}
        memory.reporters = [reporter for reporter, *_ in reports]
        memory.claims = []
        memory.round = int(re.findall(r"\d+", line)[0])
    elif line.startswith("All meet"):
        memory.living = re.findall(_any(memory.names), line.partition(":")[2])
    elif line.startswith("Votes: "):
        memory.bodies, memory.reporters, memory.claims = {}, [], []
        memory.began = memory.round
