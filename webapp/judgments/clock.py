"""Clock steps of judgments: resend hints of what waits for a worker, and follow refusals of consent."""

from __future__ import annotations

from webapp.core import queue
from webapp.core.clock import register
from webapp.judgments import withdrawing
from webapp.judgments.models import Classifier, SuggestionRun, Target


@register("judgments.targets", every=5)
def resend_targets() -> int:
    """Resend the hints of pending targets."""
    waiting = list(Target.objects.for_models().order_by("pk").values_list("pk", flat=True)[:50])
    for pk in waiting:
        queue.publish(queue.JUDGE, pk)
    return len(waiting)


@register("judgments.withdrawn", every=600)
def withdraw_refused() -> int:
    """Withdraw matches whose refusal has not reached the datasets, as those of earlier releases."""
    matches = list(withdrawing.refused_in_datasets()[:20])
    for match in matches:
        withdrawing.withdraw_match(match=match)
    return len(matches)


@register("judgments.suggestions", every=5)
def resend_suggestions() -> int:
    """Resend the hints of suggestion runs and classifiers that wait for a worker."""
    waiting = [(queue.SUGGEST, SuggestionRun.objects.waiting()), (queue.TRAIN_CLASSIFIER, Classifier.objects.waiting())]
    count = 0
    for task, rows in waiting:
        for pk in list(rows.order_by("pk").values_list("pk", flat=True)[:20]):
            queue.publish(task, pk, expires=5)
            count += 1
    return count
