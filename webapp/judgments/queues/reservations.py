"""Reservations: targets are reserved for those who open them, skipped, and released by a judgment.

Each function is one transaction; `BadInput` says what is wrong and changes nothing. Reservations expire by the
database's clock. A judgment that arrives after its reservation expired is still stored.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Window
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.judgments.models import Assignment, Judgment, Qualification, Queue, Target, TargetQuerySet
from webapp.judgments.queues import gold, priorities

MOST_TRIES = 100


class Offer(NamedTuple):
    """The next target for a person, loaded `with_games`, or None; and how many are open for them, it included."""

    target: Target | None
    open: int


def offer(*, queue: Queue, user: User, besides: int | None = None) -> Offer:
    """Return the next target for this person, reserved for them where it is first come.

    `besides`: the key of a target that they judge already, which may be open, too.
    """
    waiting = queue.targets.open_for(user)
    listed = waiting.annotate(open=Window(Count("pk"))).values_list("pk", "open")
    for _ in range(MOST_TRIES):  # others may take a target between reading and reserving it
        rows = list(listed[:2])
        following = next((key for key, _ in rows if key != besides), None)
        if following is None:
            return Offer(None, len(rows))
        target = queue.targets.with_games().filter(pk=following).first()
        if target is not None and reserve(target=target, user=user, waiting=waiting):
            return Offer(target, rows[0][1])
    return Offer(None, 0)


def reserve(*, target: Target, user: User, waiting: TargetQuerySet) -> bool:
    """Reserve a target for this person, or prolong their reservation; False if it is not `waiting` any more: those that
    are open for them.

    A target that every annotator judges, or that is assigned to them, needs no reservation, and is not read again.
    """
    queue = target.queue
    if target.gold or target.required is None or queue.assignment == Queue.Assignment.PREASSIGNED:
        return True
    with transaction.atomic():
        if not _lock(target) or not waiting.filter(pk=target.pk).exists():
            return False
        until = Now() + timedelta(minutes=queue.reserve_minutes)
        row = Assignment(target=target, annotator=user, expires_at=until)
        Assignment.objects.bulk_create(
            [row], update_conflicts=True, unique_fields=["target", "annotator"], update_fields=["expires_at"]
        )
    return True


def _lock(target: Target) -> bool:
    """Lock the target's row until the transaction ends; False if it was removed.

    Reservations and judgments of a target are thereby serialised, and both count all stored rows.
    """
    return Target.objects.select_for_update().filter(pk=target.pk).exists()


def may_read(target: Target, user: User) -> bool:
    """Return whether a target of this person's queue was offered to them: reserved, assigned, skipped or judged.

    Those that need no reservation are, but for closed batches, and before they have qualified all but gold targets.
    """
    if (target.gold or target.required is None) and not _waits(target, user):
        return True
    if target.assignments.filter(annotator=user).exists():
        return True
    return target.judgments.filter(author=user, decides=False).exists()


def _waits(target: Target, user: User) -> str:
    """Why a target is not for this person yet; empty if it is."""
    queue = target.queue
    if queue.batches_open is not None and target.batch > queue.batches_open:
        return "its batch is not open yet"
    if queue.qualification_items and not target.gold:
        passed = Qualification.objects.filter(queue=queue, annotator=user, passed=True)
        return "" if passed.exists() else "the qualification test comes first"
    return ""


@transaction.atomic
def skip(*, target: Target, user: User, why: str) -> None:
    """Skip a target: it is no longer reserved, and not offered to this person until they return it to their queue."""
    why = why.strip()
    if not why:
        raise BadInput("state briefly why you skip it", "why")
    if not _lock(target) or not Target.objects.awaited_by(user).filter(pk=target.pk).exists():
        raise BadInput("it is no longer open for you", "target")
    row, made = Assignment.objects.get_or_create(
        target=target, annotator=user, defaults={"skipped": why[:300], "expires_at": Now()}
    )
    if not made:
        row.skipped = why[:300]
        row.save(update_fields=["skipped"])


@transaction.atomic
def unskip(*, target: Target, user: User) -> None:
    """Return a skipped target to this person's queue; it is offered again if it is still open for them."""
    rows = Assignment.objects.filter(target=target, annotator=user).exclude(skipped="")
    if not rows.exists():
        raise BadInput("you did not skip it", "target")
    rows.filter(expires_at=None).update(skipped="")
    rows.filter(expires_at__isnull=False).delete()


def check_open(target: Target, user: User) -> None:
    """Raise `BadInput` unless a first judgment of this person may be stored for a target whose row is locked."""
    queue = target.queue
    if queue.state == Queue.State.CLOSED:
        raise BadInput("the queue is closed: it takes no more judgments", "target")
    if why := _waits(target, user):
        raise BadInput(why, "target")
    if target.gold or target.required is None or target.assignments.filter(annotator=user).exists():
        return
    if queue.assignment == Queue.Assignment.PREASSIGNED:
        raise BadInput("it is assigned to other annotators", "target")
    taken = target.judgments.filter(decides=False).count()
    taken += target.assignments.reserved().exclude(annotator=user).count()
    if taken >= target.required:
        raise BadInput("others judge it already, and no more judgments are required", "target")


def judgment_stored(target: Target, judgment: Judgment) -> None:
    """Follow a judgment, inside the transaction that stored it and holds its target's row.

    The reservation ends, the target's priority and the number of required judgments follow the disagreement, and a gold
    target may decide whether its author has qualified.
    """
    assignments = target.assignments.filter(annotator=judgment.author)
    assignments.filter(expires_at__isnull=False).delete()
    assignments.exclude(skipped="").update(skipped="")
    priorities.update_priority(target, changed=bool(judgment.history))
    if target.gold and judgment.author is not None:
        gold.qualify(queue=target.queue, user=judgment.author)
