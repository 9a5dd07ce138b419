"""Who may look at a match from where, and whom it tells what sits at the seats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from training.records import ALL, SPECTATOR, Viewer
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import pace, services


def own_seat(match: Match, user: User) -> MatchSeat | None:
    """The seat at which this person sits, or None."""
    return match.seats.filter(user=user).first()


def viewer_of(match: Match, user: User) -> Viewer:
    """From where this person looks on at a match: their seat, else the public's place."""
    seat = own_seat(match, user)
    return SPECTATOR if seat is None else seat.seat


def viewpoints(match: Match, user: User) -> list[Viewer]:
    """The places from which this person may look: during a match only their own; afterwards who sat there (and the
    host, annotators it is assigned to, and admins) may see all, others what its visibility allows.
    """
    if not match.over:
        return [viewer_of(match, user)]
    everything = [ALL, SPECTATOR, *range(len(services.scenario_of(match).seats))]
    involved = match.host_id == user.pk or user.is_admin or own_seat(match, user) is not None
    if involved or match.visibility == Match.Visibility.PUBLIC:
        return everything
    assigned = Match.objects.assigned_to(user).filter(pk=match.pk).exists()
    return everything if assigned else [SPECTATOR]


def told_who(match: Match, user: User) -> bool:
    """Whether this person may be told who or what sat at the other seats: once the game is over, and they have rated
    it (as a player) or judged it (as an annotator it is assigned to).
    """
    return match.over and not Match.objects.filter(pk=match.pk).untold_to(user).exists()


def shows_judgments(match: Match, user: User) -> bool:
    """Whether the replay offers this person judgments: to who judges, sees all there, and is told who sat where.

    Values and reasons give away what was hidden, and often who was a model.
    """
    return user.is_annotator and ALL in viewpoints(match, user) and told_who(match, user)


def chose_seats(match: Match, user: User) -> bool:
    """Whether this person knows what sits where because they chose it."""
    return pace.knows_seats(match, user.pk)


@dataclass(frozen=True)
class MatchEntry:
    """A match in a list: each seat with whether this person may be told what sits there."""

    match: Match
    seats: Sequence[tuple[MatchSeat, bool]]


def lines(matches: Iterable[Match], user: User) -> list[MatchEntry]:
    """Matches (loaded `with_seats`) as lists show them to this person."""
    found = list(matches)
    untold = set(
        Match.objects.filter(pk__in=[match.pk for match in found]).untold_to(user).values_list("pk", flat=True)
    )

    def shown(match: Match, seat: MatchSeat) -> bool:
        told = match.over and match.pk not in untold
        sits = match.host_id != user.pk and any(other.user_id == user.pk for other in match.seats.all())
        free = seat.kind == MatchSeat.Kind.OPEN and not sits  # a seat that fills up later is a person's
        return told or chose_seats(match, user) or seat.user_id == user.pk or free

    return [MatchEntry(match, [(seat, shown(match, seat)) for seat in match.seats.all()]) for match in found]
