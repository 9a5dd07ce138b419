"""What the clock does for the table: defaults at deadlines, hints to workers again, clocks of models that woke up."""

from training.errors import IllegalMove
from webapp.arena import hints, model_seats, services
from webapp.arena.models import DueSeat
from webapp.core import queue
from webapp.core.clock import register

MOST = 200
"""Rows of one tick; the rest follows at the next."""


@register("arena.time_out")
def time_out() -> int:
    """Play the default for every seat whose deadline has passed."""
    now = services.database_now()
    late = DueSeat.objects.filter(deadline__lte=now).order_by("deadline").values_list("pk", flat=True)[:MOST]
    done = 0
    for due_id in list(late):
        try:
            done += services.time_out(due_id=due_id) is not None
        except IllegalMove:  # the seat moved in this very moment
            continue
    return done


@register("arena.tell_workers", every=1.0)
def tell_workers() -> int:
    """Send the hints of due model seats again that nobody has taken up."""
    lost = model_seats.tell_workers(limit=MOST)
    for due_id in lost:
        queue.send(queue.PLAY, due_id)
    return len(lost)


@register("arena.wake")
def wake() -> int:
    """Start the clocks of seats whose model is ready; end matches whose model cannot be started."""
    ready, broken = model_seats.awake(limit=MOST)
    for due_id in ready:
        queue.send(queue.PLAY, due_id)
        due = DueSeat.objects.filter(pk=due_id).select_related("match").first()
        if due is not None:
            hints.send(due.match_id, services.viewers(services.scenario_of(due.match)))
    for match_id, why in broken:
        services.abort(match_id=match_id, why=why)
    return len(ready) + len(broken)


@register("arena.want", every=5.0)
def want() -> int:
    """Ask again for models that sleep although a seat waits for them (they were stopped meanwhile)."""
    return model_seats.want_sleeping()
