"""A table before its game: taking a seat, consent, Ready, waiting for models, leaving, filling seats, closing.

Each function is one transaction; it raises `BadInput` without changing anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena import hints, opponents
from webapp.arena.models import GuestLink, Match, MatchSeat
from webapp.arena.play import pace, services
from webapp.arena.signals import consent_withdrawn
from webapp.serving import services as serving
from webapp.serving.models import Deployment

LAST_SEATS = timedelta(seconds=10)
"""How long before the end of a countdown people who have yet to answer about consent can no longer sit down."""
STARTING = (Deployment.State.COLD, Deployment.State.STARTING, Deployment.State.STOPPING)
"""The states of a model that has neither started nor failed to."""


def still_open(match: Match) -> Match:
    """The match under its row lock; raises `BadInput` once its seats can no longer change. For use in a transaction."""
    locked = Match.objects.select_for_update().get(pk=match.pk)
    if locked.state != Match.State.OPEN:
        raise BadInput("the game has already begun, or the table is closed")
    return locked


def tell_everybody(match: Match) -> None:
    """After commit, hint to every viewer that the table has changed."""
    hints.send(match.pk, services.viewers_of(match.pk))


@transaction.atomic
def take_seat(*, match: Match, user: User, consent: bool | None = None) -> MatchSeat:
    """Take the first free seat, with the answer about consent if it is known.

    A user who has a seat already keeps it.
    """
    seat = _take_seat(match, user, answered=consent is not None)
    if consent is not None:
        answer_consent(match=match, user=user, agreed=consent)
    return seat


def _take_seat(match: Match, user: User, *, answered: bool) -> MatchSeat:
    locked = still_open(match)
    if seat_of_user := locked.seats.filter(user=user).first():
        return seat_of_user
    if (
        not answered
        and locked.countdown_ends_at is not None
        and locked.countdown_ends_at - services.database_now() < LAST_SEATS
    ):
        raise BadInput("the game begins in a moment: there is no time left to read about consent")
    seat = locked.seats.free().order_by("seat").first()
    if seat is None:
        raise BadInput("somebody else was faster: no seat is free")
    return sit(locked, seat, user)


def sit(match: Match, seat: MatchSeat, user: User) -> MatchSeat:
    """Give a seat of a locked match to a person, who is asked for their consent next."""
    seat.kind, seat.user, seat.consent, seat.consented_at = MatchSeat.Kind.PERSON, user, None, None
    seat.save(update_fields=["kind", "user", "consent", "consented_at"])
    tell_everybody(match)
    return seat


@transaction.atomic
def answer_consent(*, match: Match, user: User, agreed: bool) -> None:
    """Store a person's consent to the use of this match; the game begins with the last answer.

    Once the game runs, consent can only be withdrawn; what was made of a finished game is then withdrawn, too.
    """
    locked = Match.objects.select_for_update().get(pk=match.pk)
    seat = locked.seats.filter(user=user).first()
    if seat is None:
        raise BadInput("you do not sit at this table")
    if locked.state != Match.State.OPEN and agreed and seat.consent is False:
        raise BadInput("the game has begun: a refusal cannot be changed any more")
    seat.consent, seat.consented_at = agreed, services.database_now()
    seat.save(update_fields=["consent", "consented_at"])
    if locked.state == Match.State.FINISHED and not agreed:
        consent_withdrawn.send(sender=Match, match=locked)
    if locked.state == Match.State.OPEN:
        start_countdown(locked)
        begin_if_ready(locked)
        tell_everybody(locked)


def start_countdown(match: Match) -> None:
    """Start the countdown of a table once a person has answered about consent, unless its host has stopped it."""
    if match.countdown_s is None or match.countdown_stopped or match.countdown_ends_at is not None:
        return
    if match.seats.filter(kind=MatchSeat.Kind.PERSON, consent__isnull=False).exists():
        match.countdown_ends_at = services.database_now() + timedelta(seconds=match.countdown_s)
        match.save(update_fields=["countdown_ends_at"])


def needs_ready(seats: Collection[MatchSeat]) -> bool:
    """Whether players must press Ready besides answering about consent.

    They must at tables with more than two seats, where the first players may wait long for the last, unless the host is
    the only person. Another person must even if nobody else is there, because skipping Ready would reveal that. During
    a countdown nobody must; without one, everybody at a table that hides its seats, whoever sits there.
    """
    if any(seat.match.countdown_ends_at is not None for seat in seats):
        return False
    if any(seat.match.hides_seats for seat in seats):
        return True
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    return len(seats) > 2 and any(seat.user_id != seat.match.host_id for seat in people)


@transaction.atomic
def say_ready(*, match: Match, user: User) -> None:
    """Mark the user as ready, once every seat is taken or hidden; the game begins when all are taken and ready."""
    locked = still_open(match)
    seat = locked.seats.filter(user=user).first()
    if seat is None:
        raise BadInput("you do not sit at this table")
    if seat.consent is None:
        raise BadInput("answer the question about consent first")
    if locked.countdown_ends_at is not None:  # another answer would say whether a bot takes a seat
        raise BadInput("the game begins when its countdown ends")
    if not locked.hides_seats and locked.seats.filter(kind=MatchSeat.Kind.OPEN).exists():
        raise BadInput("there are empty seats: wait until somebody sits there")
    seat.ready = True
    seat.save(update_fields=["ready"])
    begin_if_ready(locked)
    tell_everybody(locked)


def _complete(seats: Sequence[MatchSeat]) -> bool:
    """Whether every seat is taken and every person has answered and, if required, is ready."""
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    if any(seat.kind == MatchSeat.Kind.OPEN for seat in seats) or any(seat.consent is None for seat in people):
        return False
    if len(seats) > 2 and any(seat.match.countdown_ends_at is not None for seat in seats):
        return False  # it begins at the end of its countdown, whoever sits there: see `countdowns`
    return not needs_ready(seats) or all(seat.ready for seat in people)


def begin_if_ready(match: Match) -> None:
    """Begin once the table is complete. If players must stay hidden, wait for models as well."""
    seats = list(match.seats.select_related(*MatchSeat.MODELS).order_by("seat"))
    if not _complete(seats):
        return
    models = [model for seat in seats for model in seat.deployments]
    ready = serving.request_all(deployments=models) if models and pace.blind(match, seats) else None
    if ready is None or all(model.pk in ready for model in models):
        services.begin(match)


def waiting_for_models(*, limit: int) -> list[int]:
    """Open tables with a model that are complete in the sense of `_complete`, oldest first.

    Those whose models have yet to start come last, so that they never delay the others.
    """
    missing = Q(kind=MatchSeat.Kind.OPEN) | Q(kind=MatchSeat.Kind.PERSON, consent=None)
    seats = MatchSeat.objects.filter(match=OuterRef("pk"))
    people = seats.filter(kind=MatchSeat.Kind.PERSON)
    must_be_ready = Exists(seats.filter(seat__gt=1)) & Exists(people.exclude(user=OuterRef("host")))  # `needs_ready`
    starting = Exists(seats.filter(Q(deployment__state__in=STARTING) | Q(speaker__state__in=STARTING)))
    with_models = Match.objects.filter(Exists(seats.filter(deployment__isnull=False)), state=Match.State.OPEN)
    counts_down = Q(countdown_ends_at__isnull=False) & Exists(seats.filter(seat__gt=1))  # `_complete`
    with_models = with_models.exclude(counts_down)
    complete = with_models.exclude(Exists(seats.filter(missing))).exclude(
        must_be_ready & Exists(people.filter(ready=False))
    )
    return list(complete.order_by(starting, "pk").values_list("pk", flat=True)[:limit])


@transaction.atomic
def begin_with_models(*, match_id: int) -> Match | None:
    """Begin a table that waited only for its models; abort it if one failed to start; None if neither."""
    match = Match.objects.select_for_update().get(pk=match_id)
    if match.state != Match.State.OPEN or not _complete(list(match.seats.all())):
        return None
    failed = Deployment.State.FAILED
    if match.seats.filter(Q(deployment__state=failed) | Q(speaker__state=failed)).exists():
        services.abort(match_id=match.pk, why="a model could not be started")
        return match
    begin_if_ready(match)
    return match if match.state == Match.State.RUNNING else None


def check_answers(match: Match) -> None:
    """Raise `BadInput` if somebody who sits at the table has not answered about consent."""
    if match.seats.filter(kind=MatchSeat.Kind.PERSON, consent=None).exists():
        raise BadInput("a player has not answered the question about consent yet")


@transaction.atomic
def fill(*, match: Match) -> None:
    """Fill every empty seat with a scripted player and begin, even if not everybody has pressed Ready."""
    locked = still_open(match)
    check_answers(locked)
    empty = locked.seats.filter(kind=MatchSeat.Kind.OPEN)
    GuestLink.objects.filter(seat__in=empty).delete()
    empty.update(kind=MatchSeat.Kind.SCRIPTED, scripted=opponents.substitute(locked.game))
    services.begin(locked)


@transaction.atomic
def leave(*, match: Match, user: User) -> None:
    """Leave the table before the game begins; the seat becomes open. A guest's own table is closed.

    Nobody leaves a table of an experiment.
    """
    locked = still_open(match)
    if locked.shown_as:
        raise BadInput("the game begins in a moment")
    seat = locked.seats.filter(user=user).first()
    if user.is_guest and locked.host_id == user.pk:
        close(match=locked)
    elif seat is not None:
        free(locked, seat)


def free(match: Match, seat: MatchSeat) -> None:
    """Empty a seat of a locked match before its game; all players who can see it must press Ready again."""
    seat.kind, seat.user, seat.scripted, seat.ready = MatchSeat.Kind.OPEN, None, "", False
    seat.consent = seat.consented_at = None
    changed_fields = ["kind", "user", "scripted", "ready", "consent", "consented_at", *seat.dismiss_models()]
    seat.save(update_fields=changed_fields)
    GuestLink.objects.filter(seat=seat).delete()
    if not match.hides_seats:
        match.seats.update(ready=False)
    tell_everybody(match)


def close(*, match: Match) -> None:
    """Close a table as its host, before or during the game, without a result."""
    services.abort(match_id=match.pk, why="closed by the host")
