"""Host's controls during a game: pause and resume, stand-ins, taking a seat back, removing a player.

Each function is one transaction; it raises `BadInput` without changing anything. A game with a stand-in is no longer
rated. A player counts as away by the time they were last seen, never by whether they had to move: in a game with secret
turns that would reveal who was to act.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Q, Value
from django.db.models.functions import Greatest

from training.errors import BadInput
from training.records import Seat
from webapp.accounts.models import User
from webapp.arena import opponents
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import pace, services
from webapp.arena.setup.waiting_room import free, tell_everybody
from webapp.arena.watching.models import FormerPlayer
from webapp.core import queue

AWAY_AT_LEAST = timedelta(seconds=60)
"""The shortest absence before a stand-in takes over, however short the time for a move."""
NOTED_EVERY = timedelta(seconds=15)
MISSED_AFTER = 2 * NOTED_EVERY
"""A player who was not seen for this long seems to have left; the table shows a countdown."""
LONGEST_PAUSE = timedelta(minutes=30)
"""The game resumes after this time: its host may have left, and the players cannot leave their seats."""
LEFT_AFTER = timedelta(days=7)
"""A person's play alone is closed after this time without a move."""


def _locked(match_id: int) -> Match:
    match = Match.objects.select_for_update().get(pk=match_id)
    if match.state != Match.State.RUNNING:
        raise BadInput("the game is not running")
    return match


def _sitting(match: Match, number: Seat) -> MatchSeat:
    seat = match.seats.filter(seat=number).first()
    if seat is None:
        raise BadInput("there is no such seat", "seat")
    return seat


def _unrate(match: Match, why: str) -> None:
    """Mark the game as not rated; the first reason is kept."""
    if match.rated:
        match.rated, match.unrated_why = False, why
        match.save(update_fields=["rated", "unrated_why"])


def _hand_over(match: Match, number: Seat, *, to_worker: bool) -> None:
    """If the seat is due, reassign its move to the current player; a pending answer of the old player is refused."""
    now = services.database_now()
    due = match.due.filter(seat=number).first()
    if due is None:
        return
    due.deadline = due.deadline or now + timedelta(seconds=match.deadline_s)
    wait, due.not_before = timedelta(0), None
    if to_worker and pace.blind(match, list(match.seats.all())):
        seconds = pace.draw(match, number, pace.times_of_people(match.game))
        delay = min(timedelta(seconds=seconds), pace.LARGEST_SHARE * (due.deadline - now))
        due.not_before, wait = now + delay, max(timedelta(0), delay - pace.AHEAD)
    due.claimed_until, due.fence, due.hint_at = None, due.fence + 1, now + wait if to_worker else None
    due.save(update_fields=["deadline", "claimed_until", "fence", "hint_at", "not_before"])
    if to_worker:
        queue.send(queue.PLAY, due.pk, delay=wait.total_seconds())


@transaction.atomic
def pause(*, match: Match) -> None:
    """Stop the clock; moves are refused until the game resumes, at the latest after `LONGEST_PAUSE`."""
    locked = _locked(match.pk)
    if locked.paused_at is not None:
        raise BadInput("the game is paused already")
    locked.paused_at = services.database_now()
    locked.save(update_fields=["paused_at"])
    tell_everybody(locked)


@transaction.atomic
def resume(*, match: Match) -> None:
    """Resume the clock: every deadline is extended by the length of the pause."""
    locked = _locked(match.pk)
    if locked.paused_at is None:
        raise BadInput("the game is not paused")
    _go_on(locked, locked.paused_at)


def _go_on(match: Match, since: datetime) -> None:
    now = services.database_now()
    paused = now - since
    shifted = {name: F(name) + paused for name in ("deadline", "not_before", "created_at")}
    match.due.update(**shifted)
    begin = Greatest(Value(now), F("not_before") - pace.AHEAD)  # a worker that begins sooner would only wait
    match.due.exclude(hint_at=None).update(hint_at=begin, claimed_until=None, fence=F("fence") + 1)
    match.seats.update(seen_at=now)
    match.paused_at = None
    if match.step_until is not None:
        match.step_until += paused
    match.save(update_fields=["paused_at", "step_until"])
    tell_everybody(match)


def paused_too_long(*, limit: int) -> list[int]:
    """Matches that have been paused for longer than `LONGEST_PAUSE`."""
    before = services.database_now() - LONGEST_PAUSE
    overlong = Match.objects.filter(state=Match.State.RUNNING, paused_at__lt=before)
    return list(overlong.order_by("paused_at").values_list("pk", flat=True)[:limit])


@transaction.atomic
def end_pause(*, match_id: int) -> Match | None:
    """Resume a game that has been paused for longer than `LONGEST_PAUSE`; return None if it has not."""
    match = Match.objects.select_for_update().get(pk=match_id)
    since = match.paused_at
    if match.state != Match.State.RUNNING or since is None or services.database_now() - since < LONGEST_PAUSE:
        return None
    _go_on(match, since)
    return match


@transaction.atomic
def replace(*, match: Match, number: Seat) -> None:
    """Let a scripted player move for a seat from now on; a person may take their seat back.

    The effect is the same for every kind of player, and nothing happens if a stand-in moves already: a host must not
    learn the kind of a player by pressing the button.
    """
    locked = _locked(match.pk)
    seat = _sitting(locked, number)
    if not seat.stand_in:
        _let_stand_in(locked, seat)


def _let_stand_in(match: Match, seat: MatchSeat) -> None:
    seat.original_kind = seat.original_kind or seat.kind
    if seat.kind != MatchSeat.Kind.PERSON:
        seat.kind = MatchSeat.Kind.SCRIPTED
    seat.scripted, seat.stand_in = opponents.substitute(match.game), True
    seat.save(update_fields=["kind", "original_kind", "scripted", "stand_in", *seat.dismiss_models()])
    _unrate(match, f"a stand-in moved for {seat.name}")
    _hand_over(match, seat.seat, to_worker=True)
    tell_everybody(match)


@transaction.atomic
def kick(*, match: Match, number: Seat) -> None:
    """Remove the player of a seat: before the game the seat becomes open, during it a scripted player takes over.

    Where seats are hidden before the game, nobody is removed then.

    Links to the seat are revoked. A removed person can no longer withdraw consent, so it is withdrawn for them.
    """
    locked = Match.objects.select_for_update().get(pk=match.pk)
    if locked.over:
        raise BadInput("the game is over")
    if locked.shown_as:
        raise BadInput("this is a table of an experiment: replace the participant in its monitor")
    seat = _sitting(locked, number)
    if locked.state == Match.State.OPEN and locked.hides_seats:
        raise BadInput("nobody may see who sits at this table before the game: remove players once it has begun")
    if locked.state == Match.State.OPEN:
        locked.join_hash = None  # or the removed player could return by the table's link
        locked.save(update_fields=["join_hash"])
        free(locked, seat)
        return
    if seat.kind == MatchSeat.Kind.PERSON:
        seat.consent, seat.consented_at = False, services.database_now()
    seat.kind, seat.scripted = MatchSeat.Kind.SCRIPTED, opponents.substitute(locked.game)
    if seat.user is not None:
        FormerPlayer.objects.get_or_create(match=locked, user=seat.user)
    seat.user, seat.stand_in = None, False
    changed = ["kind", "user", "scripted", "stand_in", "consent", "consented_at", *seat.dismiss_models()]
    seat.save(update_fields=changed)
    _unrate(locked, f"{seat.name} was sent away")
    _hand_over(locked, number, to_worker=True)
    tell_everybody(locked)


@transaction.atomic
def take_back(*, match: Match, user: User) -> None:
    """Return the user's seat from a stand-in to them."""
    locked = _locked(match.pk)
    seat = locked.seats.filter(user=user).first()
    if seat is None:
        raise BadInput("you do not sit at this table")
    if seat.barred:
        raise BadInput("your participation has ended")
    seat.stand_in, seat.scripted, seat.seen_at = False, "", services.database_now()
    seat.save(update_fields=["stand_in", "scripted", "seen_at"])
    _hand_over(locked, seat.seat, to_worker=False)
    tell_everybody(locked)


def note_presence(*, match_id: int, user: User) -> None:
    """Record that a person is present; written at most every `NOTED_EVERY`."""
    now = services.database_now()
    stale = Q(seen_at=None) | Q(seen_at__lt=now - NOTED_EVERY)
    MatchSeat.objects.filter(stale, match=match_id, user=user).update(seen_at=now)


def patience(match: Match) -> timedelta:
    """How long a player may be away before a stand-in takes over."""
    return max(AWAY_AT_LEAST, timedelta(seconds=match.deadline_s))


def back_by(seat: MatchSeat, match: Match, now: datetime) -> datetime | None:
    """When a stand-in takes over from a player who seems to have left; None for all others."""
    running = match.state == Match.State.RUNNING and match.paused_at is None and not match.task
    if not running or seat.kind != MatchSeat.Kind.PERSON or seat.stand_in or seat.seen_at is None:
        return None
    return seat.seen_at + patience(match) if now - seat.seen_at > MISSED_AFTER else None


def away(*, limit: int) -> list[tuple[int, Seat]]:
    """(match, seat) of people who were last seen longer ago than a move may take; nobody waits for those alone."""
    now = services.database_now()
    move_time = ExpressionWrapper(F("match__deadline_s") * Value(timedelta(seconds=1)), DurationField())
    people = MatchSeat.objects.filter(
        kind=MatchSeat.Kind.PERSON,
        stand_in=False,
        match__state=Match.State.RUNNING,
        match__paused_at=None,
        match__task="",
        seen_at__lt=now - AWAY_AT_LEAST,
    ).annotate(back_by=ExpressionWrapper(F("seen_at") + move_time, DateTimeField()))
    return list(people.filter(back_by__lt=now).order_by("back_by").values_list("match_id", "seat")[:limit])


@transaction.atomic
def stand_in(*, match_id: int, number: Seat) -> MatchSeat | None:
    """Let a scripted player move for an absent player; None if they are back or the game is not running."""
    match = Match.objects.select_for_update().get(pk=match_id)
    if match.state != Match.State.RUNNING or match.paused_at is not None:
        return None
    seat = _sitting(match, number)
    is_away = seat.seen_at is not None and services.database_now() - seat.seen_at > patience(match)
    if seat.kind != MatchSeat.Kind.PERSON or seat.stand_in or not is_away:
        return None
    _let_stand_in(match, seat)
    return seat


def left(*, limit: int) -> list[int]:
    """Plays of people alone in which nobody has moved for `LEFT_AFTER`."""
    before = services.database_now() - LEFT_AFTER
    plays = Match.objects.filter(state=Match.State.RUNNING, due__deadline=None, due__created_at__lt=before)
    return list(plays.exclude(task="").filter(seats__deployment=None).values_list("pk", flat=True)[:limit])
