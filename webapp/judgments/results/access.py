"""Who may read the results of a queue, which tell what others said of its seats."""

from __future__ import annotations

from webapp.accounts.models import User
from webapp.judgments.models import Queue, Target, of_same_seat


def awaited_in(queue: Queue, user: User) -> Queue | None:
    """Return the queue in which this person has yet to judge a seat of `queue`; None if they may read its results."""
    waiting = Target.objects.awaited_by(user)
    if waiting.filter(queue=queue).exists():
        return queue
    others = waiting.exclude(queue=queue)
    if not others.exists():  # which is quick, and so for most people
        return None
    target = others.filter(of_same_seat(Target.objects.filter(queue=queue))).select_related("queue").first()
    return None if target is None else target.queue
