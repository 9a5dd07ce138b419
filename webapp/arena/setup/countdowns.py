"""Countdowns: after a set time, a table's empty seats are filled with bots and its game begins.

A countdown begins with the first answer about consent (see `tables.create` and `tables.answer_consent`) and ends by the
database's clock, so that it survives a restart. At a table for more than two the game begins at its end and not before,
and nobody presses Ready: an earlier start would reveal that only people sit there. A person who has not answered loses
the seat, because nobody plays without consent.

Each function is one transaction; it raises `BadInput` without changing anything.
"""

from __future__ import annotations

from django.db import transaction

from training.errors import BadInput
from webapp.arena import opponents
from webapp.arena.models import GuestLink, Match, MatchSeat
from webapp.arena.play import services
from webapp.arena.setup import speakers, tables
from webapp.arena.setup.tables import Place

LENGTHS = (20, 30, 60, 120, 300, 600)
"""The seconds that a form offers."""


def over(*, limit: int) -> list[int]:
    """Open tables whose countdown has ended, the earliest first."""
    ended = Match.objects.filter(state=Match.State.OPEN, countdown_ends_at__lte=services.database_now())
    return list(ended.order_by("countdown_ends_at").values_list("pk", flat=True)[:limit])


@transaction.atomic
def finish(*, match_id: int) -> Match | None:
    """Fill the empty seats of a table whose countdown has ended, and begin; None if it has not ended.

    Without any person left the table waits again; its countdown restarts with the next answer.
    """
    match = Match.objects.select_for_update().get(pk=match_id)
    if (
        match.state != Match.State.OPEN
        or match.countdown_ends_at is None
        or services.database_now() < match.countdown_ends_at
    ):
        return None
    _clear(match)
    for seat in match.seats.filter(kind=MatchSeat.Kind.PERSON, consent=None):
        tables.free(match, seat)
    if match.seats.filter(kind=MatchSeat.Kind.PERSON).exists():
        _fill(match)
    tables.tell_everybody(match)
    return match


@transaction.atomic
def stop(*, match: Match) -> None:
    """Stop the countdown of a table as its host: it then waits for people, who press Ready."""
    locked = tables.still_open(match)
    if locked.countdown_s is None:
        raise BadInput("this table has no countdown")
    locked.countdown_s = None
    _clear(locked)
    tables.begin_if_ready(locked)
    tables.tell_everybody(locked)


@transaction.atomic
def cut_short(*, match: Match) -> None:
    """Fill the empty seats and begin at once as the table's host; refused while somebody has not answered."""
    locked = tables.still_open(match)
    tables.check_answers(locked)
    _clear(locked)
    _fill(locked)
    tables.tell_everybody(locked)


def _clear(match: Match) -> None:
    match.countdown_ends_at = None
    match.save(update_fields=["countdown_ends_at", "countdown_s"])


def _fill(match: Match) -> None:
    """Give every empty seat of a locked match to its bot, take everybody to be ready, and begin."""
    place = _bot(match)
    empty = match.seats.filter(kind=MatchSeat.Kind.OPEN)
    GuestLink.objects.filter(seat__in=empty).delete()
    empty.update(
        kind=place.kind,
        scripted=place.scripted,
        deployment=place.deployment,
        speaker=place.speaker,
        form=dict(place.form),
    )
    match.seats.filter(kind=MatchSeat.Kind.PERSON).update(ready=True)
    tables.begin_if_ready(match)


def _bot(match: Match) -> Place:
    """The player for the empty seats: the chosen model, else (or if its speaker is deleted) one without a model."""
    if match.countdown_model is not None:
        try:
            return speakers.place_of(match.countdown_model, speakers.AS_TRAINED, match.host)
        except BadInput:
            pass
    return Place(scripted=opponents.substitute(match.game))
