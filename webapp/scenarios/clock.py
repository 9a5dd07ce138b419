"""Clock steps of datasets: resend hints of imports and withdrawals, and delete unfinished uploads."""

from __future__ import annotations

from webapp.core import queue
from webapp.core.clock import register
from webapp.scenarios import imports
from webapp.scenarios.models import Import, Withdrawal

MOST = 50


@register("scenarios.imports", every=5)
def resend_imports() -> int:
    """Resend the hint of every import that waits for a worker."""
    count = 0
    for task, waiting in (
        (queue.READ_IMPORT, Import.objects.unread()),
        (queue.STORE_IMPORT, Import.objects.unstored()),
    ):
        for pk in waiting.values_list("pk", flat=True)[:MOST]:
            queue.publish(task, pk)
            count += 1
    return count


@register("scenarios.uploads", every=300)
def forget_unfinished() -> int:
    """Delete uploads whose request failed."""
    return imports.forget_unfinished()


@register("scenarios.withdrawals", every=5)
def resend_withdrawals() -> int:
    """Resend the hint of every withdrawal of consent that waits for a worker."""
    waiting = list(Withdrawal.objects.unfinished().order_by("pk").values_list("pk", flat=True)[:MOST])
    for pk in waiting:
        queue.publish(queue.WITHDRAW, pk)
    return len(waiting)
