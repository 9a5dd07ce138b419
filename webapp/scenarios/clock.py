"""What is due here: uploads that nobody reads or stores, and those that were never finished."""

from __future__ import annotations

from webapp.core import queue
from webapp.core.clock import register
from webapp.scenarios import imports
from webapp.scenarios.models import Import

MOST = 50


@register("scenarios.imports", every=5)
def resend_imports() -> int:
    """Send the hint of every import that waits for a worker again."""
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
    """Delete what is left of uploads whose request died."""
    return imports.forget_unfinished()
