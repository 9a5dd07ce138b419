"""Guests who never came back: their rows are deleted, with the tables they opened at which nothing was played.

A guest who has played stays, so that the games of others, ratings and exports stay whole; so does a participant of an
experiment. A session lasts two weeks, so that nobody can return as a guest who was removed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, ProtectedError, Q, QuerySet

from webapp.accounts.models import Role, User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import services

logger = logging.getLogger(__name__)
INACTIVE_AFTER = timedelta(days=30)
UNPLAYED = (Match.State.OPEN, Match.State.ABORTED)
"""The states of a table that has no result."""


def _inactive(before: datetime) -> QuerySet[User]:
    """Guests who have not been active since `before`, and have no games except unplayed tables that they opened."""
    seats = MatchSeat.objects.filter(user=OuterRef("pk"))
    hosted = Match.objects.filter(host=OuterRef("pk"))
    others = MatchSeat.objects.filter(match__host=OuterRef("pk"), user__isnull=False).exclude(user=OuterRef("pk"))
    return User.objects.filter(
        Q(last_login=None) | Q(last_login__lt=before),
        ~Exists(seats.filter(seen_at__gte=before)),
        ~Exists(seats.exclude(match__host=OuterRef("pk"))),
        ~Exists(hosted.exclude(state__in=UNPLAYED)),
        ~Exists(others),
        role=Role.GUEST,
        date_joined__lt=before,
        participations__isnull=True,
    )


@dataclass
class Removal:
    """Passes over the inactive guests in batches. A guest who cannot be removed waits for the next pass, so that many
    of them do not hold up the others.
    """

    last: int = 0
    """The key of the last guest of the batch before; 0 at the start of a pass."""

    def remove_batch(self, *, limit: int) -> int:
        """Remove those of the next `limit` inactive guests who can be removed; return how many."""
        inactive = _inactive(services.database_now() - INACTIVE_AFTER).filter(pk__gt=self.last)
        pks = list(inactive.order_by("pk").values_list("pk", flat=True)[:limit])
        self.last = pks[-1] if len(pks) == limit else 0
        return sum(_remove(pk) for pk in pks)


@transaction.atomic
def _remove(pk: int) -> bool:
    """Remove a guest under the lock of their row; False if they have come back or something else refers to them."""
    locked = User.objects.select_for_update().filter(pk=pk, role=Role.GUEST)
    if not locked.exists() or not _inactive(services.database_now() - INACTIVE_AFTER).filter(pk=pk).exists():
        return False
    try:
        with transaction.atomic():
            Match.objects.filter(host=pk).delete()
            User.objects.get(pk=pk).delete()
    except ProtectedError as error:
        logger.warning("guest %s is kept: %s", pk, error)
        return False
    return True
