"""The one task that supervises a run, whatever its kind."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import SUPERVISE
from worker.supervise import supervise


@shared_task(name=SUPERVISE.name)
def supervise_run(run_id: int) -> None:
    """Claim the run if it is queued, and supervise its process until it ends."""
    try:
        supervise(run_id)
    finally:
        close_old_connections()
