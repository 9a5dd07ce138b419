"""Which targets come first, and how many judgments they need: by disagreement, or by the model's uncertainty."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Avg, F, FloatField, OuterRef, Subquery, Value
from django.db.models.functions import Abs, Coalesce

from webapp.judgments.models import Queue, Suggestion, Target
from webapp.judgments.queues.sharing import assign_one_more
from webapp.judgments.queues.similarity import disagreement

DISAGREE = 0.2
"""Annotators disagree on a target from this mean dissimilarity of its judgments on."""


def update_priority(target: Target, *, changed: bool = False) -> None:
    """Take a new or `changed` judgment into account, inside the transaction that holds the target's row.

    Under the order by disagreement, the target's priority is the disagreement of its judgments. Where its annotators
    disagree and all required judgments are there, one more is required, up to the queue's `max_overlap`. A
    change asks for nobody more: once all are there, people who may judge in the queue may have read them.
    """
    queue = target.queue
    if target.gold or (queue.order != Queue.Order.DISAGREEMENT and queue.max_overlap is None):
        return
    judgments = [row.records() for row in target.judgments.filter(decides=False).with_labels()]
    value = disagreement(judgments, target.codebook())
    if queue.order == Queue.Order.DISAGREEMENT:
        target.priority = value
    full = target.required is not None and len(judgments) >= target.required
    more = full and queue.max_overlap is not None and (target.required or 0) < queue.max_overlap
    if more and not changed and value >= DISAGREE and target.required is not None:
        target.required += 1
        if queue.assignment == Queue.Assignment.PREASSIGNED:
            assign_one_more(target)
    target.save(update_fields=["priority", "required"])


@transaction.atomic
def prioritise(*, queue: Queue) -> None:
    """Compute the priorities of all targets of a queue anew, as its order says.

    Under the order by uncertainty, call it once suggestions of its targets were stored: the priority of a target is
    the mean of 1 - |2p - 1| over the scores p of its suggestions, 0 without any. Gold targets get the mean priority of
    the others, so that they come neither first nor last.
    """
    targets = Target.objects.filter(queue=queue)
    if queue.order == Queue.Order.UNCERTAINTY:
        scored = Suggestion.objects.filter(target=OuterRef("pk"), score__isnull=False).order_by().values("target")
        unsure = scored.annotate(mean=Avg(1.0 - Abs(2.0 * F("score") - 1.0), output_field=FloatField()))
        targets.update(priority=Coalesce(Subquery(unsure.values("mean")), Value(0.0)))
    elif queue.order == Queue.Order.DISAGREEMENT:
        for target in targets.select_for_update(of=("self",)).with_games().iterator(chunk_size=200):
            judgments = [row.records() for row in target.judgments.filter(decides=False).with_labels()]
            Target.objects.filter(pk=target.pk).update(priority=disagreement(judgments, target.codebook()))
    else:
        return
    mean = targets.filter(gold=False).aggregate(mean=Avg("priority"))["mean"]
    targets.filter(gold=True).update(priority=mean or 0.0)
