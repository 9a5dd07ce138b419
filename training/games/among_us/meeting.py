"""A meeting: whose word it is, and what the ballots come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from training.records import Seat

Ballot = Seat | None
"""Who shall be ejected; None: nobody."""


class Meeting:
    """The living in a drawn order, which is gone through `times` times; then everybody votes."""

    def __init__(self, order: Sequence[Seat], times: int) -> None:
        self.order = tuple(order)
        self.length = len(self.order) * times
        self.spoken = 0

    @property
    def speaker(self) -> Seat | None:
        """Whose word it is; None when all have spoken, and vote."""
        return self.order[self.spoken % len(self.order)] if self.spoken < self.length else None


def ejected(ballots: Mapping[Seat, Ballot]) -> Seat | None:
    """Return who has more votes than anybody else and than nobody has; None on a tie."""
    votes = Counter(ballots.values())
    most = [ballot for ballot, number in votes.items() if number == max(votes.values())]
    return most[0] if len(most) == 1 else None
