"""The tasks that compute results from judgments: an analysis of a queue, and the behaviours of a run."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import ANALYSE_QUEUE, ANALYSE_RUN
from webapp.judgments.results import analyses, emergence


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


@shared_task(name=ANALYSE_RUN.name)
def analyse_run(run_id: int, version_id: int, source: str, outcome: str, reader_id: int) -> None:
    """Compute the behaviours of a run as far as the reader may know them, and keep them in the same way."""
    try:
        emergence.compute(run_id, version_id, source, outcome, reader_id)
    except Exception:
        emergence.fail(run_id, version_id, source, outcome, reader_id)
        raise
    finally:
        close_old_connections()
