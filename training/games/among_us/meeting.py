"""A meeting: the order of speakers, and the result of the ballots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from training.records import Seat

Ballot = Seat | None
"""The seat to eject; None: nobody."""


class Meeting:
    """The living speak in a random order, `times` times each; then everybody votes."""

    def __init__(self, order: Sequence[Seat], times: int) -> None:
        self.order = tuple(order)
        self.length = len(self.order) * times
        self.spoken = 0

    @property
    def speaker(self) -> Seat | None:
        """The seat that speaks now; None when all have spoken and vote."""
        return self.order[self.spoken % len(self.order)] if self.spoken < self.length else None


def ejected(ballots: Mapping[Seat, Ballot]) -> Seat | None:
    """Return the seat with more votes than any other and than skipping; None on a tie."""
    votes = Counter(ballots.values())
    most = [ballot for ballot, number in votes.items() if number == max(votes.values())]
    return most[0] if len(most) == 1 else None
