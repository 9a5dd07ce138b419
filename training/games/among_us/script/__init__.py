"""A script that plays Among Us from its observations alone.

A crewmate does its tasks along shortest paths, reports bodies, says where it was and whom it saw, and votes on
evidence: kills it saw, players who left the room of a body, contradictions. The imposter pretends to work, kills when
nobody sees it, denies and accuses.
"""

from __future__ import annotations

from random import Random

from training.games.among_us.script.memory import LEFT, Memory, remember
from training.games.among_us.settings import Room
from training.games.among_us.words import place
from training.players.scripted import Script, do, offered, pick
from training.records import Observation

SURE = LEFT
"""Least suspicion for a vote."""
RECENT = 6
"""Number of rounds after which the imposter no longer follows a player who left."""
WITNESSED = (
    "I saw {name} kill {victim} in {room} in round {round}. Vote for {name}.",
    "It is {name}: I saw {name} kill {victim} in {room} in round {round}.",
)
LEAVING = ("I saw {name} leave {room} in round {round}, where the body was.",)
WHERE = ("{where}{company}.", "I worked on my tasks, and {where}{company}.")
SUSPECT = ("I will vote for {name}.", "I suspect {name}, and will vote for {name}.")
CLUELESS = ("I do not know who it was. Where was everybody?", "I saw nothing suspicious. I would rather skip.")
DENIALS = (
    "That is not true: I was at my tasks. I suspect {name}.",
    "No, that is wrong. I was alone at work. I suspect {name}.",
)
RUMOURS = ("I saw {name} leave {room} shortly before. I will vote for {name}.", "I suspect {name}, who was near there.")


class AmongUsScript(Script):
    """One seat; it reads its role from its rules."""

    def answer(self, observation: Observation, chance: Random) -> str:
        memory = remember(observation, self.seat, self.names)
        if offered(observation, "talk"):
            line = self._lie(memory, chance) if memory.imposter else self._tell(memory, chance)
            return do(observation, "talk", line)
        if offered(observation, "vote"):
            return self._vote(observation, memory, chance)
        return self._hunt(observation, memory, chance) if memory.imposter else self._work(observation, memory)

    # --- in the rooms ---

    def _work(self, observation: Observation, memory: Memory) -> str:
        """Report a body, work here, or move towards the nearest open task."""
        if report := offered(observation, "report"):
            return do(observation, "report", player=report.args[0].choices[0])
        if offered(observation, "task"):
            return do(observation, "task")
        if not memory.tasks:
            return do(observation, "wait")
        goal = min(memory.tasks, key=lambda room: (_far(memory.room, room), room))
        return do(observation, "go", direction=_toward(memory.room, goal))

    def _hunt(self, observation: Observation, memory: Memory, chance: Random) -> str:
        """Kill if at most one other player is awake here, then leave; else wait where players are, or follow them."""
        awake = [name for name in memory.around if name not in memory.asleep]
        kill, go = offered(observation, "kill"), offered(observation, "go")
        assert go is not None
        if kill and len(awake) <= 1:
            return do(observation, "kill", player=awake[0] if awake else pick(chance, kill.args[0].choices))
        if memory.around and not memory.body:
            return do(observation, "task" if not kill and chance.random() < 0.3 else "wait")
        departures = [sighting for sighting in memory.sightings if sighting.room == memory.room and sighting.left]
        if departures and memory.round - departures[-1].round <= RECENT:
            return do(observation, "go", direction=departures[-1].left)
        return do(observation, "go", direction=pick(chance, go.args[0].choices))

    # --- in the meeting ---

    def _tell(self, memory: Memory, chance: Random) -> str:
        """State the best evidence, else the own location, then the suspect."""
        mine = sum(speaker == memory.name for speaker, _ in memory.claims)
        if memory.killers:
            name, victim = next(iter(memory.killers.items()))
            at = next(sighting for sighting in memory.kills if sighting.name == name)
            return pick(chance, WITNESSED).format(name=name, victim=victim, room=place(at.room), round=at.round)
        if mine == 0:
            return self._leaving(memory, chance) or self._where(memory, chance)
        suspect, points = _worst(memory)
        return pick(chance, SUSPECT).format(name=suspect) if points >= SURE else pick(chance, CLUELESS)

    def _leaving(self, memory: Memory, chance: Random) -> str:
        suspicion = memory.suspicion()
        for sighting in reversed(memory.sightings):
            seen_there = sighting.left and sighting.room in memory.bodies.values()
            if seen_there and suspicion.get(sighting.name, 0.0) >= LEFT:
                room = place(sighting.room)
                return pick(chance, LEAVING).format(name=sighting.name, room=room, round=sighting.round)
        return ""

    def _where(self, memory: Memory, chance: Random) -> str:
        """State the last location and the company there; the imposter leaves out rooms with bodies."""
        hidden = memory.bodies.values() if memory.imposter else ()
        at, room = next((stay for stay in reversed(memory.way) if stay[1] not in hidden), memory.way[0])
        company = [sighting.name for sighting in memory.sightings if sighting.round == at and sighting.room == room]
        others = f" with {' and '.join(dict.fromkeys(company))}" if company else " alone"
        return pick(chance, WHERE).format(where=f"in round {at} I was in {place(room)}", company=others)

    def _lie(self, memory: Memory, chance: Random) -> str:
        """Deny an accusation, blame somebody else, or join an existing suspicion."""
        accused = any(memory.mentioned(line) for speaker, line in memory.claims if speaker != memory.name)
        name, points = _worst(memory)
        if not (accused or points or any(speaker == memory.name for speaker, _ in memory.claims)):
            return self._where(memory, chance)
        others = [other for other in memory.living if other not in (memory.name, *memory.reporters)]
        scapegoat = name if points else pick(chance, others or memory.reporters)
        room = place(next(iter(memory.bodies.values())))
        return pick(chance, DENIALS if accused else RUMOURS).format(name=scapegoat, room=room)

    def _vote(self, observation: Observation, memory: Memory, chance: Random) -> str:
        """Vote for the most suspected player; without evidence skip, if that is possible."""
        vote = offered(observation, "vote")
        assert vote is not None
        choices = vote.args[0].choices
        suspicion = memory.suspicion()
        suspects = [name for name in choices if name in suspicion]
        worst = max(suspects, key=lambda name: (suspicion[name], name))
        if suspicion[worst] >= (SURE if not memory.imposter else 0.1):
            return do(observation, "vote", player=worst)
        return do(observation, "vote", player="skip" if "skip" in choices else pick(chance, suspects))


def _worst(memory: Memory) -> tuple[str, float]:
    suspicion = memory.suspicion()
    name = max(sorted(suspicion), key=lambda name: suspicion[name])
    return name, suspicion[name]


def _far(start: Room, goal: Room) -> int:
    return abs(start[0] - goal[0]) + abs(start[1] - goal[1])


def _toward(start: Room, goal: Room) -> str:
    """Return the first step of a shortest path."""
    if goal[0] != start[0]:
        return "east" if goal[0] > start[0] else "west"
    return "south" if goal[1] > start[1] else "north"
