"""Periodic tasks of the arena: time-outs, countdowns, stand-ins, ends of pauses, lost hints, model starts."""

import logging
from collections.abc import Callable
from functools import partial

from django.db import InterfaceError, OperationalError

from webapp.arena import guests, hints
from webapp.arena.models import DueSeat
from webapp.arena.play import hosting, model_seats, services
from webapp.arena.setup import countdowns, waiting_room
from webapp.core import queue
from webapp.core.clock import register

logger = logging.getLogger(__name__)
MOST = 200
"""The largest number of rows per tick; the rest follows at the next tick."""
GUESTS = guests.Removal()


def _apart(match_id: int, work: Callable[[], object]) -> bool:
    """Run `work` for one match and return whether it did anything; abort the match if it fails.

    A failure in one match does not delay the deadlines of the others.
    """
    try:
        return work() is not None
    except (OperationalError, InterfaceError) as error:  # a deadlock, say: the next tick tries again
        logger.warning("match %s has to wait for the next tick: %s", match_id, error)
    except Exception:  # the root of this match's task
        logger.exception("match %s failed", match_id)
        services.abort(match_id=match_id, why="it ended because of an internal error")
    return False


@register("arena.time_out")
def time_out() -> int:
    """Play the default for every seat whose deadline has passed."""
    now = services.database_now()
    late = DueSeat.objects.filter(deadline__lte=now, match__paused_at=None).order_by("deadline")
    overdue = list(late.values_list("pk", "match_id")[:MOST])
    return sum(_apart(match_id, partial(services.time_out, due_id=due_id)) for due_id, match_id in overdue)


@register("arena.go_on", every=5.0)
def go_on() -> int:
    """Resume games that their hosts paused and left."""
    match_ids = hosting.paused_too_long(limit=MOST)
    return sum(_apart(match_id, partial(hosting.end_pause, match_id=match_id)) for match_id in match_ids)


@register("arena.close_left", every=60.0)
def close_left() -> int:
    """Close the plays of people alone who have not come back."""
    why = f"nobody moved for {hosting.LEFT_AFTER.days} days"
    match_ids = hosting.left(limit=MOST)
    for match_id in match_ids:
        _apart(match_id, partial(services.abort, match_id=match_id, why=why))
    return len(match_ids)


@register("arena.remove_guests", every=600.0)
def remove_guests() -> int:
    """Remove guests who never came back and have played nothing."""
    return GUESTS.remove_batch(limit=MOST)


@register("arena.stand_in", every=5.0)
def stand_in() -> int:
    """Let scripted players stand in for people who have been away too long."""
    away = hosting.away(limit=MOST)
    return sum(_apart(match_id, partial(hosting.stand_in, match_id=match_id, number=seat)) for match_id, seat in away)


@register("arena.tell_workers", every=1.0)
def tell_workers() -> int:
    """Resend the hints of due model seats that no worker has claimed."""
    due_ids = model_seats.tell_workers(limit=MOST)
    for due_id in due_ids:
        queue.send(queue.PLAY, due_id)
    return len(due_ids)


@register("arena.start_clocks")
def start_clocks() -> int:
    """Start the clocks of seats whose model is ready; end matches whose model cannot be started."""
    ready, broken = model_seats.start_clocks(limit=MOST)
    for due_id, match_id in ready:
        queue.send(queue.PLAY, due_id)
        hints.send(match_id, services.viewers_of(match_id))
    for match_id, why in broken:
        _apart(match_id, partial(services.abort, match_id=match_id, why=why))
    return len(ready) + len(broken)


@register("arena.finish_countdowns")
def finish_countdowns() -> int:
    """Fill the seats of tables whose countdown has ended, and begin their games."""
    match_ids = countdowns.ended(limit=MOST)
    return sum(_apart(match_id, partial(countdowns.finish, match_id=match_id)) for match_id in match_ids)


@register("arena.begin_with_models", every=1.0)
def begin_with_models() -> int:
    """Begin the games that waited only for their models."""
    waiting = waiting_room.waiting_for_models(limit=MOST)
    return sum(_apart(match_id, partial(waiting_room.begin_with_models, match_id=match_id)) for match_id in waiting)


@register("arena.request_models", every=5.0)
def request_models() -> int:
    """Request stopped models again if a seat waits for them."""
    return model_seats.request_stopped()
