"""What is due here: uploads that nobody reads."""

from __future__ import annotations

from webapp.core import queue
from webapp.core.clock import register
from webapp.scenarios.models import Import


@register("scenarios.imports", every=5)
def resend_imports() -> int:
    """Send the hint of every unread upload again."""
    waiting = list(Import.objects.unread().values_list("pk", flat=True)[:50])
    for pk in waiting:
        queue.publish(queue.READ_IMPORT, pk)
    return len(waiting)
