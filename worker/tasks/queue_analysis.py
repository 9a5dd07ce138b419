"""The task that computes an analysis of a queue's judgments."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import ANALYSE_QUEUE
from webapp.judgments.results import analyses


@shared_task(name=ANALYSE_QUEUE.name)
def analyse_queue(queue_id: int, name: str, reader_id: int | None = None) -> None:
    """Compute the analysis, as far as its reader may know it, and keep it for the pages that wait for it."""
    try:
        analyses.compute(queue_id=queue_id, name=name, reader_id=reader_id)
    except Exception:
        analyses.fail(queue_id=queue_id, name=name, reader_id=reader_id)
        raise
    finally:
        close_old_connections()
