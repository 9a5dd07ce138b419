"""Links to a table that is not full yet: to one seat reserved for a guest, or to any free seat.

A token is shown once and stored hashed; a newer token replaces an older one. Each function is one transaction and
raises `BadInput` without changing anything.
"""

from __future__ import annotations

from django.db import IntegrityError, transaction

from training.errors import BadInput
from webapp.accounts.models import User, digest, new_token
from webapp.accounts.services import create_guest
from webapp.arena.models import GuestLink, Match, MatchSeat
from webapp.arena.play import services
from webapp.arena.setup.waiting_room import sit, still_open, take_seat, tell_everybody


@transaction.atomic
def invite(*, match: Match, number: int) -> str:
    """Reserve an empty seat for a guest; return the link's token, which is shown once. Revokes an older link."""
    locked = still_open(match)
    if locked.hides_seats:
        raise BadInput("nobody may see which seats of this table are taken: send the link to the table", "seat")
    seat = locked.seats.filter(seat=number, kind=MatchSeat.Kind.OPEN).first()
    if seat is None:
        raise BadInput("this seat is taken", "seat")
    token = new_token()
    GuestLink.objects.filter(seat=seat).delete()
    GuestLink.objects.create(seat=seat, token_hash=digest(token))
    tell_everybody(locked)
    return token


@transaction.atomic
def open_link(*, match: Match) -> str:
    """Return the token of a new link to the table, which is shown once. Revokes an older link."""
    locked = still_open(match)
    token = new_token()
    locked.join_hash = digest(token)
    locked.save(update_fields=["join_hash"])
    return token


def find_table(token: str) -> Match | None:
    """The table that a token opens, or None."""
    return Match.objects.select_related("host").filter(join_hash=digest(token)).first()


@transaction.atomic
def join(*, token: str, user: User | None, shown_name: str) -> tuple[MatchSeat, User]:
    """Take the next free seat of the table that a link opens, as `user` or as a new guest; return both."""
    match = find_table(token)
    if match is None:
        raise BadInput("this link does not exist, or was replaced by a newer one")
    locked = still_open(match)
    if locked.join_hash != digest(token):
        raise BadInput("this link was replaced by a newer one: ask the host for it")
    person = user or create_guest(shown_name=shown_name)
    return take_seat(match=locked, user=person), person


def find_link(token: str) -> GuestLink | None:
    """The link that a token opens, claimed or not, or None."""
    links = GuestLink.objects.select_related("seat__match__host")
    return links.filter(token_hash=digest(token)).first()


@transaction.atomic
def claim(*, token: str, user: User | None, shown_name: str) -> tuple[MatchSeat, User]:
    """Take the seat of a link, once, as `user` or as a new guest; return both."""
    link = find_link(token)
    if link is None:
        raise BadInput("this link does not exist, or was replaced by a newer one")
    locked = still_open(link.seat.match)
    link = GuestLink.objects.select_for_update().select_related("seat").filter(pk=link.pk).first()
    if link is None or link.claimed_at is not None:
        raise BadInput("this link has been used or replaced: ask the host for another one")
    if user is not None and locked.seats.filter(user=user).exists():
        raise BadInput("you sit at this table already: the link is for somebody else")
    link.claimed_at = services.database_now()
    link.save(update_fields=["claimed_at"])
    person = user or create_guest(shown_name=shown_name)
    try:
        return sit(locked, link.seat, person), person
    except IntegrityError as error:
        raise BadInput("you sit at this table already") from error
