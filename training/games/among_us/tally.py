"""The counts of a game, for its metrics and returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from training.games.among_us.meeting import Ballot
from training.games.among_us.world import World
from training.games.log import elimination
from training.records import Seat


class Tally:
    """Kills, meetings, tasks and votes so far."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dealt = [len(person.tasks) for person in world.people]
        self.done = [0] * len(world.people)
        """Number of tasks done by each seat."""
        self.kills = self.meetings = self.wrong = 0
        self._votes = [0] * len(world.people)
        self._right = [0] * len(world.people)
        self._left: dict[Seat, int] = {}

    def lost(self, seat: Seat) -> None:
        """Record the round in which a seat was killed or ejected."""
        self._left[seat] = self._world.round

    def voted(self, voters: Collection[Seat], ballots: Mapping[Seat, Ballot]) -> None:
        """Count the cast ballots, and those for the imposter."""
        for seat in voters:
            self._votes[seat] += 1
            self._right[seat] += ballots[seat] == self._world.imposter

    def metrics(self) -> dict[str, float]:
        """Return the counts of the game by name."""
        return {
            "rounds": float(self._world.round),
            "kills": float(self.kills),
            "meetings": float(self.meetings),
            "ejected_wrong": float(self.wrong),
            "tasks": sum(self.done) / sum(self._dealt),
        }

    def metrics_of(self, seat: Seat) -> dict[str, float]:
        """Return the counts of one seat; `tasks` only of crewmates, `votes_right` only of crewmates who voted."""
        world = self._world
        metrics = {"survived": float(world.people[seat].alive)}
        if seat != world.imposter:
            metrics["tasks"] = float(self.done[seat])
            if self._votes[seat]:
                metrics["votes_right"] = self._right[seat] / self._votes[seat]
        return metrics | elimination(self._left.get(seat), world.round)
