"""How far a queue is: batches, what each annotator did, how fast and how right; and an annotator's own numbers.

Annotators are numbers: first those who judged, in the order of their first judgment, then the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import mean
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, Sum, Value, When
from django.db.models.functions import Now

from webapp.accounts.models import User
from webapp.judgments.models import Assignment, Judgment, Qualification, Queue, Target
from webapp.judgments.naming import numbers_in
from webapp.judgments.queues.comparing import alike
from webapp.judgments.queues.gold import Accuracy, accuracies

BREAK = timedelta(minutes=10)
"""A gap between two judgments from which on the annotator took a break: it is no active time."""
MOST_QUEUES = 20
NO_GOLD = Accuracy(0, 0)


@dataclass(frozen=True)
class Batch:
    """One batch: how many judgments it has of those that are wanted."""

    number: int
    open: bool
    targets: int
    judged: int
    wanted: int


def batches(queue: Queue, annotators: int) -> list[Batch]:
    """Return the batches of a people's queue with so many annotators, in order."""
    everybody = Value(annotators)
    wanted = Case(When(Q(gold=True) | Q(wanted=None), then=everybody), default=F("wanted"), output_field=IntegerField())
    rows = queue.targets.order_by("batch").values("batch").annotate(targets=Count("pk"), all_wanted=Sum(wanted))
    judgments = Judgment.objects.filter(target__queue=queue, decides=False).order_by()
    done = dict(judgments.values("target__batch").annotate(number=Count("pk")).values_list("target__batch", "number"))
    last = queue.batches_open
    return [
        Batch(row["batch"], last is None or row["batch"] <= last, row["targets"], done.get(row["batch"], 0),
              row["all_wanted"])
        for row in rows
    ]  # fmt: skip


@dataclass(frozen=True)
class Annotator:
    """What one annotator did in a queue. `per_hour`: judgments per hour of active time; None for fewer than two.

    `assigned` are targets that are shared out to them and not judged, `reserved` those that they have open.
    """

    number: int
    user: User
    present: bool
    judged: int = 0
    unscored: int = 0
    assigned: int = 0
    reserved: int = 0
    skipped: int = 0
    per_hour: float | None = None
    gold: Accuracy = NO_GOLD
    qualification: Qualification | None = None


def annotators(queue: Queue) -> list[Annotator]:
    """Return everybody who judges or judged in a people's queue, in the order of their numbers."""
    judgments: dict[int, list[tuple[datetime, float | None]]] = defaultdict(list)
    unscored: dict[int, int] = defaultdict(int)
    rows = Judgment.objects.filter(target__queue=queue, decides=False).exclude(author=None).order_by("pk")
    for author, at, seconds, failed in rows.values_list("author", "created_at", "seconds", "unscored"):
        judgments[author].append((at, seconds))
        unscored[author] += failed
    present = {user.pk: user for user in queue.annotators.all()}
    numbers = numbers_in(queue.pk)
    gone = User.objects.in_bulk([pk for pk in numbers if pk not in present])
    people = {**gone, **present}
    order = [*numbers, *sorted(pk for pk in present if pk not in numbers)]
    counts = _assignments(queue)
    right = accuracies(queue)
    rounds = Qualification.objects.filter(queue=queue) if queue.qualify_items else ()
    qualified = {row.annotator_id: row for row in rounds}
    return [
        Annotator(
            number=number,
            user=people[pk],
            present=pk in present,
            judged=len(judgments.get(pk, ())),
            unscored=unscored.get(pk, 0),
            per_hour=per_hour(judgments.get(pk, ())),
            gold=right.get(pk, NO_GOLD),
            qualification=qualified.get(pk),
            **counts.get(pk, {}),
        )
        for number, pk in enumerate(order, start=1)
    ]


def _assignments(queue: Queue) -> Mapping[int, dict[str, Any]]:
    rows = Assignment.objects.filter(target__queue=queue).unjudged().order_by()
    counted = rows.values("annotator").annotate(
        assigned=Count("pk", filter=Q(expires_at=None, skipped="")),
        reserved=Count("pk", filter=Q(expires_at__gt=Now(), skipped="")),
        skipped=Count("pk", filter=~Q(skipped="")),
    )
    names = ("assigned", "reserved", "skipped")
    return {pk: dict(zip(names, numbers, strict=True)) for pk, *numbers in counted.values_list("annotator", *names)}


def per_hour(judgments: Sequence[tuple[datetime, float | None]]) -> float | None:
    """Return how many judgments somebody makes per hour of active time; None for fewer than two.

    Of each judgment, with the time when it was stored and the seconds that it took, the active time is those seconds;
    where they are not known, the time since the judgment before, unless that was a break.
    """
    ordered = sorted(judgments, key=lambda row: row[0])
    if len(ordered) < 2:
        return None
    active, counted = 0.0, 0
    for (before, _), (at, seconds) in pairwise([(ordered[0][0], None), *ordered]):
        gap = (at - before).total_seconds()
        taken = seconds if seconds is not None else gap if 0 < gap < BREAK.total_seconds() else None
        if taken is not None:
            active, counted = active + taken, counted + 1
    return 3600 * counted / active if active > 0 else None


@dataclass(frozen=True)
class OwnQueue:
    """An annotator's own numbers in a queue: `agreement` with the others, from 0 to 1, once nothing waits for them."""

    queue: Queue
    left: int
    judged: int
    skipped: Sequence[Target]
    per_hour: float | None
    agreement: float | None
    in_training: bool
    failed: bool


def own_queues(user: User) -> list[OwnQueue]:
    """Return the latest queues in which a person may judge, newest first."""
    queues = list(Queue.objects.assigned_to(user).select_related("codebook_version__codebook")[:MOST_QUEUES])
    skipped: dict[int, list[Target]] = defaultdict(list)
    for target in Target.objects.filter(queue__in=queues).skipped_by(user):
        skipped[target.queue_id].append(target)
    judgments: dict[int, list[tuple[datetime, float | None]]] = defaultdict(list)
    rows = Judgment.objects.filter(target__queue__in=queues, author=user, decides=False)
    for queue, at, seconds in rows.values_list("target__queue", "created_at", "seconds"):
        judgments[queue].append((at, seconds))
    waiting = set(Target.objects.filter(queue__in=queues).awaited_by(user).values_list("queue", flat=True))
    agreements = _agreements(user, [queue for queue in queues if queue.pk not in waiting])
    rounds = {row.queue_id: row for row in Qualification.objects.filter(queue__in=queues, annotator=user)}
    return [
        OwnQueue(
            queue=queue,
            left=queue.left,  # type: ignore[attr-defined]
            judged=len(judgments[queue.pk]),
            skipped=skipped[queue.pk],
            per_hour=per_hour(judgments[queue.pk]),
            agreement=agreements.get(queue.pk),
            in_training=queue.qualify_items > 0 and not (queue.pk in rounds and rounds[queue.pk].passed),
            failed=queue.pk in rounds and not (rounds[queue.pk].passed or rounds[queue.pk].by_owner),
        )
        for queue in queues
    ]


def _agreements(user: User, queues: Iterable[Queue]) -> dict[int, float]:
    """The mean similarity of a person's judgments with each other judgment of the same targets, by queue."""
    own = Target.objects.filter(queue__in=list(queues)).judged_by(user).order_by().values("pk")
    rows = Judgment.objects.not_awaited_by(user).filter(target__in=own, decides=False).exclude(author=None)
    by_target: dict[Target, list[Judgment]] = defaultdict(list)
    for row in rows.select_related("target", "codebook_version__codebook").with_labels():
        if row.target is not None:
            by_target[row.target].append(row)
    likeness: dict[int, list[float]] = defaultdict(list)
    for target, judgments in by_target.items():
        mine = next(row for row in judgments if row.author_id == user.pk)
        codebook = mine.codebook_version.record()
        others = [row for row in judgments if row is not mine]
        likeness[target.queue_id] += [alike(mine.records(), row.records(), codebook) for row in others]
    return {queue: mean(values) for queue, values in likeness.items() if values}
