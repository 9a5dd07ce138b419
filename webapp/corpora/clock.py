"""Clock steps of corpora: resend hints, forget what nobody uses."""

from __future__ import annotations

from webapp.core import queue
from webapp.core.clock import register
from webapp.corpora import services
from webapp.corpora.models import Index

MOST = 50
HINT_SECONDS = 5.0


@register("corpora.indexes", every=HINT_SECONDS)
def resend_indexes() -> int:
    """Resend the hint of every index that waits for a worker; a machine builds those of a kind one after the other."""
    waiting = list(Index.objects.waiting().order_by("pk").values_list("pk", flat=True)[:MOST])
    for pk in waiting:
        if not queue.publish(queue.BUILD_INDEX, pk, expires=HINT_SECONDS):
            break
    return len(waiting)


@register("corpora.unused", every=60)
def forget_unused() -> int:
    """Delete files and indexes of which there is no corpus any more."""
    return services.forget_unused()


@register("corpora.uploads", every=3600)
def forget_uploads() -> int:
    """Delete temporary files of requests that a killed site left."""
    return services.forget_uploads()
