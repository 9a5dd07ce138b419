"""Countdowns: after a set time, a table's empty seats are filled with bots and its game begins.

A countdown begins with the first answer about consent (see `tables.create` and `waiting_room.answer_consent`) and ends
by the database's clock, so that it survives a restart. At a table for more than two, the game never begins earlier, and
nobody presses Ready: an earlier start would reveal that only people sit there. For the same reason, where players must
stay hidden, the game waits for the countdown's model even if people have taken every seat. A person without an answer
loses the seat, because nobody plays without consent.

Where seats are drawn, nobody sees before the game which of them are taken (`Match.hides_seats`), and no action of the
host has another outcome for it: the host can stop the countdown, or cut it to its last seconds, whoever sits there.

Each function is one transaction; it raises `BadInput` without changing anything.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef

from training.errors import BadInput
from webapp.arena import opponents
from webapp.arena.models import GuestLink, Match, MatchSeat
from webapp.arena.play import pace, services
from webapp.arena.setup import speakers, waiting_room
from webapp.arena.setup.tables import Place
from webapp.serving import services as serving
from webapp.serving.models import Deployment

LENGTHS = (20, 30, 60, 120, 300, 600)
"""The lengths that the form offers, in seconds."""
START_WITHIN = timedelta(minutes=3)
"""How long a countdown's model may take to start after its end; then a player without a model replaces it."""


def ended(*, limit: int) -> list[int]:
    """Open tables whose countdown has ended, the earliest first.

    Those that still wait for their model come last: however many they are, they do not hold up the others.
    """
    now = services.database_now()
    rows = Match.objects.filter(state=Match.State.OPEN, countdown_ends_at__lte=now)
    starting = {"countdown_model__remote": None, "countdown_model__state__in": waiting_room.STARTING}
    waits = Match.objects.filter(pk=OuterRef("pk"), countdown_ends_at__gt=now - START_WITHIN, **starting)
    return list(rows.order_by(Exists(waits), "countdown_ends_at").values_list("pk", flat=True)[:limit])


@transaction.atomic
def finish(*, match_id: int) -> Match | None:
    """Fill the empty seats of a table whose countdown has ended, and begin; None if it has not, or waits for its model.

    If no person is left, the table waits again; the countdown restarts with the next answer.
    """
    match = Match.objects.select_for_update().get(pk=match_id)
    return match if _finish(match) else None


def _finish(match: Match) -> bool:
    now, ends_at = services.database_now(), match.countdown_ends_at
    if match.state != Match.State.OPEN or ends_at is None or now < ends_at:
        return False
    bot = _bot(match, waits=now < ends_at + START_WITHIN)
    if bot is None:
        return False
    _clear(match)
    for seat in match.seats.filter(kind=MatchSeat.Kind.PERSON, consent=None):
        waiting_room.free(match, seat)
    if match.seats.filter(kind=MatchSeat.Kind.PERSON).exists():
        _fill(match, bot)
    waiting_room.tell_everybody(match)
    return True


@transaction.atomic
def stop(*, match: Match) -> None:
    """Stop the countdown of a table as its host: it then waits for people, who press Ready."""
    locked = waiting_room.still_open(match)
    if locked.countdown_s is None or (locked.countdown_stopped and locked.countdown_ends_at is None):
        raise BadInput("this table has no countdown")
    locked.countdown_stopped, locked.countdown_ends_at = True, None
    locked.save(update_fields=["countdown_stopped", "countdown_ends_at"])
    waiting_room.begin_if_ready(locked)
    waiting_room.tell_everybody(locked)


@transaction.atomic
def end_early(*, match: Match) -> None:
    """End the countdown as the table's host: now, which is refused while somebody has not answered.

    Where seats are hidden it ends `LAST_SEATS` later, whoever sits there, even if it was stopped. A countdown that ends
    sooner stays as it is: to press again must not prolong the wait for a model.
    """
    locked = waiting_room.still_open(match)
    ends_at = services.database_now()
    if locked.hides_seats:
        ends_at += waiting_room.LAST_SEATS
    else:
        waiting_room.check_answers(locked)
    locked.countdown_ends_at = min(locked.countdown_ends_at or ends_at, ends_at)
    locked.save(update_fields=["countdown_ends_at"])
    if not _finish(locked):  # it goes on, or waits for its model: everybody sees when it ends
        waiting_room.tell_everybody(locked)


def _clear(match: Match) -> None:
    match.countdown_ends_at = None
    match.save(update_fields=["countdown_ends_at"])


def _fill(match: Match, bot: Place) -> None:
    """Give every empty seat of a locked match to a bot, mark everybody as ready, and begin."""
    empty = match.seats.filter(kind=MatchSeat.Kind.OPEN)
    GuestLink.objects.filter(seat__in=empty).delete()
    empty.update(**bot.player)
    match.seats.filter(kind=MatchSeat.Kind.PERSON).update(ready=True)
    waiting_room.begin_if_ready(match)


def _bot(match: Match, *, waits: bool) -> Place | None:
    """The player for empty seats; None while the table waits for its models to start.

    It is the chosen model, or one without a model if the speaker was deleted or a model cannot be started.
    """
    substitute = Place(scripted=opponents.substitute(match.game))
    if match.countdown_model is None:
        return substitute
    if match.countdown_model.checkpoint is not None:
        match.countdown_model.checkpoint.chosen_as = match.countdown_alias
    try:
        place = speakers.place_of(match.countdown_model, speakers.AS_TRAINED, match.host)
    except BadInput:
        return substitute
    if not pace.blind(match, list(match.seats.all())):
        return place  # whoever sits there knows the players: the game begins, and its moves wait for the model
    if any(model.state == Deployment.State.FAILED and model.remote_id is None for model in place.deployments):
        return substitute
    # with those that sit there: the game requests them together, and tables must lock models in the same order
    seated = [model for seat in match.seats.select_related(*MatchSeat.MODELS) for model in seat.deployments]
    ready = serving.request_all(deployments=[*place.deployments, *seated])
    if all(model.pk in ready for model in place.deployments):
        return place
    return None if waits else substitute
