"""The progress of a queue: batches, and each annotator's work, speed and accuracy; and an annotator's own numbers.

Annotators are numbers: first those who judged, in the order of their first judgment, then the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import Aggregate, Count, F, Max, Min, Q, Sum, Value
from django.db.models.functions import Coalesce, Now

from webapp.accounts.models import User
from webapp.judgments.models import Assignment, Judgment, JudgmentQuerySet, Qualification, Queue, Target
from webapp.judgments.naming import numbers_in
from webapp.judgments.queues.gold import Accuracy, accuracies
from webapp.judgments.results import analyses, withheld
from webapp.judgments.results.background import Analysis, State
from webapp.judgments.results.withheld import Awaited

BREAK = timedelta(minutes=10)
"""A gap between two judgments from which on the annotator took a break: it is no active time."""
MOST_QUEUES = 20
FEW = 500
"""Targets whose keys a query names."""
NO_GOLD = Accuracy(0, 0)


@dataclass(frozen=True)
class Batch:
    """One batch: how many judgments it has of those that are required."""

    number: int
    open: bool
    targets: int
    judged: int
    required: int


@dataclass(frozen=True)
class Tally:
    """The judgments of a queue, counted in one read: those that are scored, the annotators' work by account, how many
    they made in each batch, how many targets have a decision, the annotators' numbers by account, and the `state` of
    all judgments for analyses.
    """

    scored: int
    work: Mapping[int, Work]
    by_batch: Mapping[int, int]
    decided: int
    numbers: Mapping[int, int]
    state: State


class Required(NamedTuple):
    """Numbers of targets, of those that everybody judges, and of judgments that the others require."""

    targets: int
    of_everybody: int
    of_others: int


@dataclass(frozen=True)
class TargetTally:
    """The targets of a queue by state and by batch and how many are gold, without those of withdrawn games; whether
    there are such.
    """

    by_state: Mapping[str, int]
    by_batch: Mapping[int, Required]
    gold: int
    withdrawn: bool


def tally_targets(queue: Queue) -> TargetTally:
    """Count the targets of a queue."""
    everybody = Q(gold=True) | Q(required=None)
    targets: Any = Target.everything.filter(queue=queue).with_consent().order_by()
    rows = targets.values_list("kept", "batch", "state").annotate(
        number=Count("pk"),
        of_everybody=Count("pk", filter=everybody),
        of_others=Sum("required", filter=~everybody, default=0),
        of_gold=Count("pk", filter=Q(gold=True)),
    )
    by_state, by_batch = Counter[str](), dict[int, Required]()
    for _, batch, state, number, of_everybody, of_others, _ in (counted := [row for row in rows if row[0]]):
        by_state[state] += number
        before = by_batch.get(batch, Required(0, 0, 0))
        by_batch[batch] = Required(*map(sum, zip(before, (number, of_everybody, of_others), strict=True)))
    gold = sum(row[-1] for row in counted)
    return TargetTally(by_state, by_batch, gold, withdrawn=len(counted) < len(rows))


def tally(queue: Queue, targets: TargetTally) -> Tally:
    """Count the judgments of a queue whose games may be judged; `targets` are its targets."""
    judgments = Judgment.everything.filter(queue=queue).order_by()
    if targets.withdrawn:  # without such, consent need not be looked up for every judgment
        judgments = judgments.consented()
    one = len(targets.by_batch) < 2  # then no target is read
    batched = judgments.annotate(batch=Value(next(iter(targets.by_batch), 1)) if one else F("target__batch"))
    more = {"newest": Max("pk"), "last": Max("updated_at"), "first": Min("pk")}
    rows = _counted(batched, "author", "decides", "batch", **more)
    by_batch, by_author = Counter[int](), defaultdict[int, list[Counts]](list)
    firsts: dict[int, int] = {}
    for author, decides, batch, counts, _, _, first in rows:
        if author is not None and not decides:
            by_batch[batch] += counts.number
            by_author[author].append(counts)
            firsts[author] = min(first, firsts.get(author, first))
    work = _work(judgments.filter(decides=False), "author", {pk: Counts.total(each) for pk, each in by_author.items()})
    decided = sum(counts.number for _, decides, _, counts, *_ in rows if decides)
    state = {
        "count": sum(row[3].number for row in rows),
        "newest": max((row[4] for row in rows), default=None),
        "last": max((row[5] for row in rows if row[5] is not None), default=None),
        "decisions": decided,
    }
    numbers = {author: number for number, author in enumerate(sorted(firsts, key=lambda pk: firsts[pk]), 1)}
    return Tally(
        scored=sum(row[3].number - row[3].failed for row in rows),
        work=work,
        by_batch=by_batch,
        decided=decided,
        numbers=numbers_in(queue.pk) if targets.withdrawn else numbers,  # they count judgments of withdrawn games, too
        state=state,
    )


def batches(queue: Queue, annotators: int, targets: TargetTally, counted: Tally) -> list[Batch]:
    """Return the batches of a people's queue with so many annotators, in order."""
    last = queue.batches_open
    return [
        Batch(
            number=batch,
            open=last is None or batch <= last,
            targets=required.targets,
            judged=counted.by_batch.get(batch, 0),
            required=annotators * required.of_everybody + required.of_others,
        )
        for batch, required in sorted(targets.by_batch.items())
    ]


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


def annotators(queue: Queue, targets: TargetTally, counted: Tally) -> list[Annotator]:
    """Return everybody who judges or judged in a people's queue, in the order of their numbers."""
    present = {user.pk: user for user in queue.annotators.all()}
    numbers = counted.numbers
    gone = User.objects.in_bulk([pk for pk in numbers if pk not in present])
    people = {**gone, **present}
    order = [*numbers, *sorted(pk for pk in present if pk not in numbers)]
    counts = _assignments(queue)
    right = accuracies(queue) if targets.gold else {}
    rounds = Qualification.objects.filter(queue=queue) if queue.qualification_items else ()
    qualified = {row.annotator_id: row for row in rounds}
    return [
        Annotator(
            number=number,
            user=people[pk],
            present=pk in present,
            judged=counted.work[pk].judged,
            unscored=counted.work[pk].unscored,
            per_hour=counted.work[pk].per_hour,
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


@dataclass(frozen=True)
class Work:
    """How many judgments somebody made, how many of them could not be scored, and how many an hour."""

    judged: int = 0
    unscored: int = 0
    per_hour: float | None = None


class Counts(NamedTuple):
    """Numbers of judgments, of those that could not be scored, and of those whose seconds are known, with their sum."""

    number: int
    failed: int
    active: float
    timed: int

    @classmethod
    def total(cls, counts: Sequence[Counts]) -> Counts:
        """Return the sums of several."""
        return cls(*map(sum, zip(*counts, strict=True)))


def _counted(judgments: JudgmentQuerySet, *by: str, **more: Aggregate) -> list[tuple[Any, ...]]:
    """The `Counts` of judgments behind the values of the columns that they are grouped by, and before what more is
    asked of each group.
    """
    failed, active = Count("pk", filter=Q(unscored=True)), Coalesce(Sum("seconds"), 0.0)
    rows = judgments.order_by().values(*by).annotate(number=Count("pk"), failed=failed, active=active,
                                                     timed=Count("seconds"), **more)  # fmt: skip
    behind = len(by) + len(Counts._fields)
    return [
        (*row[: len(by)], Counts(*row[len(by) : behind]), *row[behind:])
        for row in rows.values_list(*by, *Counts._fields, *more)
    ]


def _work(judgments: JudgmentQuerySet, by: str, counted: Mapping[int, Counts]) -> dict[int, Work]:
    """Return the work in these judgments by account or queue, the column `by`, from their counts; times are loaded
    where some are not known.
    """
    times: dict[int, list[tuple[datetime, float | None]]] = defaultdict(list)
    untimed = [key for key, counts in counted.items() if counts.timed < counts.number]
    if untimed:
        of_some = judgments.filter(**{f"{by}__in": untimed}).order_by("pk")
        for key, at, seconds in of_some.values_list(by, "created_at", "seconds"):
            times[key].append((at, seconds))
    work: dict[int, Work] = defaultdict(Work)
    for key, (number, failed, active, timed) in counted.items():
        rate = per_hour(times[key]) if key in times else 3600 * timed / active if number > 1 and active else None
        work[key] = Work(number, failed, rate)
    return work


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
    """An annotator's own numbers in a queue: `agreement` with the others once nothing waits for them, an analysis of
    `results.similarity`.
    """

    queue: Queue
    left: int
    judged: int
    skipped: Sequence[Target]
    per_hour: float | None
    agreement: Analysis | None
    in_training: bool
    failed: bool

    def similarity_of(self, user: User) -> float | None:
        """Return the similarity of a person's judgments with the others'; None while there is none."""
        result = None if self.agreement is None else self.agreement.result
        return None if result is None else result.by_author.get(user.pk)


def own_queues(user: User) -> list[OwnQueue]:
    """Return the latest queues in which a person may judge, newest first."""
    named = Queue.objects.annotated_by(user).select_related("codebook_version__codebook")
    queues = list(named.order_by("-created_at")[:MOST_QUEUES])
    awaited = withheld.awaited_by(user)
    left = _left(queues, awaited, user)
    skipped: dict[int, list[Target]] = defaultdict(list)
    if Assignment.objects.filter(annotator=user).exclude(skipped="").exists():
        for target in Target.objects.filter(queue__in=queues).skipped_by(user):
            skipped[target.queue_id].append(target)
    work, states = own_work(queues, awaited, user)
    rounds = {row.queue_id: row for row in Qualification.objects.filter(queue__in=queues, annotator=user)}
    return [
        OwnQueue(
            queue=queue,
            left=left.get(queue.pk, 0),
            judged=work[queue.pk].judged,
            skipped=skipped[queue.pk],
            per_hour=work[queue.pk].per_hour,
            agreement=None
            if queue.pk in awaited.queues
            else analyses.of_queue(queue, "similarity", user, awaited=awaited, state=states[queue.pk]),
            in_training=queue.qualification_items > 0 and not (queue.pk in rounds and rounds[queue.pk].passed),
            failed=queue.pk in rounds and not (rounds[queue.pk].passed or rounds[queue.pk].by_owner),
        )
        for queue in queues
    ]


def own_work(queues: Sequence[Queue], awaited: Awaited, user: User) -> tuple[Mapping[int, Work], Mapping[int, State]]:
    """A person's work by queue; and of queues of which nothing is awaited the state of all annotators' judgments, read
    with it.
    """
    rows = Judgment.objects.filter(author__isnull=False, decides=False)
    own = rows.filter(queue__in=queues, author=user)
    done = [queue for queue in queues if queue.pk not in awaited.queues]
    latest = {"newest": Max("pk"), "last": Max("updated_at")}
    groups = _counted(rows.filter(queue__in=done), "queue", "author", **latest) if done else []
    counts = {queue: each for queue, author, each, *_ in groups if author == user.pk}
    counts |= dict(_counted(own.exclude(queue__in=done), "queue")) if len(done) < len(queues) else {}
    states: dict[int, State] = {}
    for queue in done:
        of_queue = [row for row in groups if row[0] == queue.pk]
        states[queue.pk] = {
            "count": sum(row[2].number for row in of_queue),
            "newest": max((row[3] for row in of_queue), default=None),
            "last": max((row[4] for row in of_queue), default=None),
            "decisions": 0,
        }
    return _work(own, "queue", counts), states


def _left(queues: Sequence[Queue], awaited: Awaited, user: User) -> dict[int, int]:
    """How many targets are open for a person in each of these queues: whatever is open is awaited, too."""
    waiting = [queue for queue in queues if queue.pk in awaited.queues]
    if not waiting:
        return {}
    targets = Target.objects.filter(queue__in=waiting).open_for(user).order_by()
    if len(awaited.targets) <= FEW:
        targets = targets.filter(pk__in=awaited.targets)  # the others of a large queue are not looked at
    return dict(targets.values_list("queue").annotate(number=Count("pk")))
