"""The counts of a game, for its metrics and returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from training.games.among_us.meeting import Ballot
from training.games.among_us.world import World
from training.games.log import elimination
from training.records import Move, Seat

FEWEST_LETTERS = 3
"""A message with fewer letters and digits counts as silence."""


class Tally:
    """Kills, meetings, tasks, votes, messages and decisions so far."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.dealt = [len(person.tasks) for person in world.people]
        """Number of tasks of each seat at the start."""
        self.done = [0] * len(world.people)
        """Number of tasks done by each seat."""
        self.kills = self.meetings = self.wrong = 0
        self._votes = [0] * len(world.people)
        self._right = [0] * len(world.people)
        self._messages = [0] * len(world.people)
        self._silent = [0] * len(world.people)
        self._decisions = [0] * len(world.people)
        self._waits = [0] * len(world.people)
        self._left: dict[Seat, int] = {}

    def lost(self, seat: Seat) -> None:
        """Record the round in which a seat was killed or ejected."""
        self._left[seat] = self._world.round

    def voted(self, voters: Collection[Seat], ballots: Mapping[Seat, Ballot]) -> None:
        """Count the cast ballots, and those for the imposter."""
        for seat in voters:
            self._votes[seat] += 1
            self._right[seat] += ballots[seat] == self._world.imposter

    def decided(self, moves: Mapping[Seat, Move]) -> None:
        """Count decisions in the rooms, and those to wait."""
        for seat, move in moves.items():
            self._decisions[seat] += 1
            self._waits[seat] += move.action == "wait"

    def spoke(self, seat: Seat, text: str) -> None:
        """Count a message of a meeting; an empty text is that of a seat that said nothing."""
        self._messages[seat] += 1
        self._silent[seat] += sum(character.isalnum() for character in text) < FEWEST_LETTERS

    def metrics(self) -> dict[str, float]:
        """Return the counts of the game by name; `silent` and `waits` only if somebody was to speak or to decide."""
        return {
            "rounds": float(self._world.round),
            "kills": float(self.kills),
            "meetings": float(self.meetings),
            "ejected_wrong": float(self.wrong),
            "tasks": sum(self.done) / sum(self.dealt),
            **_share("silent", sum(self._silent), sum(self._messages)),
            **_share("waits", sum(self._waits), sum(self._decisions)),
        }

    def metrics_of(self, seat: Seat) -> dict[str, float]:
        """Return the counts of one seat; `tasks` only of crewmates, `votes_right` only of crewmates who voted.

        `silent` is only of seats that were to speak, `waits` of those that were to decide.
        """
        world = self._world
        metrics = {
            "survived": float(world.people[seat].alive),
            **_share("silent", self._silent[seat], self._messages[seat]),
            **_share("waits", self._waits[seat], self._decisions[seat]),
        }
        if seat != world.imposter:
            metrics["tasks"] = float(self.done[seat])
            if self._votes[seat]:
                metrics["votes_right"] = self._right[seat] / self._votes[seat]
        return metrics | elimination(self._left.get(seat), world.round)


def _share(name: str, count: int, of: int) -> dict[str, float]:
    return {name: count / of} if of else {}
