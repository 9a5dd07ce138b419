"""How long people recently waited for each other, by game: measured, not estimated.

A person waits from the first answer about consent at a table until its game begins. Only tables with at
least two people at the start count: all others begin at once. Rematches and tables of experiments do not count, because
their players are already there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from django.db.models import Count, F, Min, Q

from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import services

RECENT = timedelta(days=30)
HIDDEN_FOR = timedelta(days=1)
"""A table counts only this long after its end, when its players are known: earlier, the time could reveal who plays."""
NEWEST = 20
"""The newest tables of a game that count."""
ENOUGH = 3
"""Number of tables from which the median is called usual."""
MOST_ROWS = 2000


@dataclass(frozen=True)
class WaitingTime:
    """The seconds of waiting at the newest tables of one game, the newest first."""

    seconds: Sequence[float] = ()

    @property
    def median_s(self) -> float | None:
        """The median; None if nobody waited recently."""
        return median(self.seconds) if self.seconds else None

    @property
    def has_enough(self) -> bool:
        """Whether there are enough tables to call the median usual."""
        return len(self.seconds) >= ENOUGH


NOBODY_WAITED = WaitingTime()


def by_game() -> dict[str, WaitingTime]:
    """The waiting time of every game in which somebody waited recently."""
    now = services.database_now()
    people = Q(seats__user__isnull=False)
    answered = people & Q(seats__kind=MatchSeat.Kind.PERSON, seats__consented_at__lte=F("started_at"))
    begun = Match.objects.filter(
        started_at__gte=now - RECENT, ended_at__lte=now - HIDDEN_FOR, shown_as="", task="", swapped_from=None
    )
    waited = begun.annotate(people=Count("seats", filter=people), first=Min("seats__consented_at", filter=answered))
    rows = waited.filter(people__gte=2, first__isnull=False).order_by("-started_at", "-pk")
    by_game: dict[str, list[float]] = defaultdict(list)
    for game, first, started in rows.values_list("game", "first", "started_at")[:MOST_ROWS]:
        if len(by_game[game]) < NEWEST:
            by_game[game].append((started - first).total_seconds())
    return {game: WaitingTime(tuple(seconds)) for game, seconds in by_game.items()}
