"""Targets shared out among annotators: balanced at creation, and moved when somebody cannot judge theirs.

Each write is one transaction; `BadInput` says what is wrong and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from random import Random

from django.db import transaction
from django.db.models import QuerySet

from training.errors import BadInput
from webapp.accounts.models import Role, User
from webapp.judgments.models import Assignment, Queue, Target


def share_out(queue: Queue, targets: Iterable[Target]) -> None:
    """Assign every target to as many annotators as it wants, so that their numbers differ by one at most.

    Those with the fewest assignments come first, and chance decides among equals, so that all pairs occur.
    """
    people = sorted(queue.annotators.values_list("pk", flat=True))
    loads = Counter(dict.fromkeys(people, 0))
    loads.update(Assignment.objects.filter(target__queue=queue).values_list("annotator", flat=True))
    chance = Random(queue.pk)
    rows = []
    for target in targets:
        for person in _least_loaded(people, loads, target.required or len(people), chance):
            loads[person] += 1
            rows.append(Assignment(target=target, annotator_id=person))
    Assignment.objects.bulk_create(rows, batch_size=1000)


def _least_loaded(people: Sequence[int], loads: Counter[int], count: int, chance: Random) -> list[int]:
    return sorted(people, key=lambda person: (loads[person], chance.random()))[:count]


def assign_one_more(target: Target) -> bool:
    """Assign a target to one more annotator, the one with the fewest unjudged assignments; False if nobody is left."""
    queue = target.queue
    taken = set(target.assignments.values_list("annotator", flat=True))
    taken |= set(target.judgments.filter(decides=False).values_list("author", flat=True))
    free = [pk for pk in queue.annotators.values_list("pk", flat=True) if pk not in taken]
    for person in _least_loaded(free, _unjudged(queue), 1, Random(target.pk)):
        Assignment.objects.create(target=target, annotator_id=person)
    return bool(free)


def _unjudged(queue: Queue) -> Counter[int]:
    """How many assignments each annotator of a queue has yet to judge."""
    rows = Assignment.objects.filter(target__queue=queue).unjudged().values_list("annotator", flat=True)
    return Counter(rows)


@transaction.atomic
def reassign(*, queue: Queue, from_: User, to: Collection[User] = ()) -> tuple[int, int]:
    """Give what is assigned to one person and not judged to others; return how many moved and how many stayed.

    `to`: annotators of the queue (empty: all others). A target stays where each of them has it already, or may have
    read what others said of it. What is reserved for the person becomes free.
    """
    annotators = list(queue.annotators.exclude(pk=from_.pk).order_by("pk"))
    people = [user.pk for user in annotators if not to or user in to]
    if not people or (to and len(people) < len(set(to))):
        raise BadInput("choose other annotators of this queue", "to")
    rows = Assignment.objects.filter(target__queue=queue, annotator=from_).unjudged()
    rows.filter(expires_at__isnull=False).delete()
    loads, chance, moved, stayed = _unjudged(queue), Random(from_.pk), 0, 0
    readable = {user.pk: _readable(queue, user) for user in annotators if user.pk in people}
    for row in rows.select_for_update(of=("self",)).select_related("target").order_by("target__position"):
        taken = set(row.target.assignments.values_list("annotator", flat=True))
        taken |= set(row.target.judgments.filter(decides=False).values_list("author", flat=True))
        taken |= {pk for pk, targets in readable.items() if row.target_id in targets}
        free = _least_loaded([pk for pk in people if pk not in taken], loads, 1, chance)
        if not free:
            stayed += 1
            continue
        row.annotator_id, row.skipped = free[0], ""
        row.save(update_fields=["annotator", "skipped"])
        loads[free[0]] += 1
        moved += 1
    return moved, stayed


def _readable(queue: Queue, user: User) -> set[int]:
    """The targets of a queue of which this person may have read others' judgments: researchers read those that they are
    not to judge.
    """
    if not user.is_researcher:
        return set()
    judged = queue.targets.filter(judgments__isnull=False).exclude(pk__in=queue.targets.awaited_by(user).values("pk"))
    return set(judged.values_list("pk", flat=True))


def addable() -> QuerySet[User]:
    """Return whom a researcher may make an annotator without an invitation; names of others are not told."""
    return User.objects.filter(is_active=True, role__in=[Role.ANNOTATOR, Role.RESEARCHER, Role.ADMIN])


@transaction.atomic
def add_annotators(*, queue: Queue, annotators: Iterable[User]) -> list[User]:
    """Let these people judge in a people's queue; return those who did not do so before.

    What is shared out already stays with those who have it.
    """
    locked = _changeable(queue)
    new = [user for user in annotators if not locked.annotators.filter(pk=user.pk).exists()]
    if refused := [user.username for user in new if not (user.is_annotator and user.is_active)]:
        raise BadInput(f"{refused[0]} does not have the annotator role: invite them by a link", "annotators")
    locked.annotators.add(*new)
    return new


@transaction.atomic
def remove_annotator(*, queue: Queue, annotator: User) -> tuple[int, int]:
    """Take a person out of a queue; return how many of their unjudged targets others got, and how many nobody did.

    Their judgments stay. Added again, they go on where they were.
    """
    locked = _changeable(queue)
    if not locked.annotators.filter(pk=annotator.pk).exists():
        raise BadInput("they are not an annotator of this queue", "annotator")
    if locked.annotators.count() == 1:
        raise BadInput("nobody would be left to judge: add another annotator first, or close the queue", "annotator")
    return _take_out(locked, annotator)


@transaction.atomic
def leave(*, queue: Queue, annotator: User) -> None:
    """Let a person leave a queue, also the last one: its owner can add others. Their judgments stay.

    What was assigned to them goes to other annotators, or becomes free.
    """
    locked = _changeable(queue)
    if not locked.annotators.filter(pk=annotator.pk).exists():
        raise BadInput("you do not judge in this queue", "queue")
    _take_out(locked, annotator)


def _take_out(locked: Queue, annotator: User) -> tuple[int, int]:
    others = locked.annotators.exclude(pk=annotator.pk).exists()
    moved, stayed = reassign(queue=locked, from_=annotator) if others else (0, 0)
    Assignment.objects.filter(target__queue=locked, annotator=annotator).unjudged().delete()
    locked.annotators.remove(annotator)
    locked.invitations.filter(accepted_by=annotator).delete()
    return moved, stayed


def _changeable(queue: Queue) -> Queue:
    """The queue, locked; `BadInput` for one that takes no more annotators."""
    locked = Queue.objects.select_for_update().get(pk=queue.pk)
    if locked.judge_id is not None or locked.rule:
        raise BadInput("no person judges this queue", "annotators")
    if locked.state == Queue.State.CLOSED:
        raise BadInput("the queue is closed", "queue")
    return locked
