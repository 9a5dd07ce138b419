"""What is counted in a game, for its metrics and returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from training.games.among_us.meeting import Ballot
from training.games.among_us.world import World
from training.records import Seat


class Tally:
    """Kills, meetings, tasks and votes so far."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dealt = [len(person.tasks) for person in world.people]
        self.done = [0] * len(world.people)
        """Tasks done, for each seat."""
        self.kills = self.meetings = self.wrong = 0
        self._votes = [0] * len(world.people)
        self._right = [0] * len(world.people)

    def voted(self, voters: Collection[Seat], ballots: Mapping[Seat, Ballot]) -> None:
        """Count the ballots that were cast, and those that named the imposter."""
        for seat in voters:
            self._votes[seat] += 1
            self._right[seat] += ballots[seat] == self._world.imposter

    def metrics(self) -> dict[str, float]:
        """Return the counts by name; `_N` is about seat N. `votes_right_N` is only there for crewmates who voted."""
        world, seats = self._world, range(len(self.done))
        found = {
            "rounds": float(world.round),
            "kills": float(self.kills),
            "meetings": float(self.meetings),
            "ejected_wrong": float(self.wrong),
            "tasks": sum(self.done) / sum(self._dealt),
        }
        found |= {f"survived_{seat}": float(world.people[seat].alive) for seat in seats}
        found |= {f"tasks_{seat}": float(self.done[seat]) for seat in seats if seat != world.imposter}
        cast = [seat for seat in seats if self._votes[seat] and seat != world.imposter]
        return found | {f"votes_right_{seat}": self._right[seat] / self._votes[seat] for seat in cast}
