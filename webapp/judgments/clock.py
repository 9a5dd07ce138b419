"""Clock step of judgments: resend hints of targets that wait for a judge model."""

from __future__ import annotations

from webapp.core import queue
from webapp.core.clock import register
from webapp.judgments.models import Target


@register("judgments.targets", every=5)
def resend_targets() -> int:
    """Resend the hints of pending targets."""
    waiting = list(Target.objects.for_models().order_by("pk").values_list("pk", flat=True)[:50])
    for pk in waiting:
        queue.publish(queue.JUDGE, pk)
    return len(waiting)
