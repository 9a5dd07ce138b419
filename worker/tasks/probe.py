"""The task that asks the models of a finished match what they believed."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import PROBE
from worker.probe import probe


@shared_task(name=PROBE.name)
def probe_match(match_id: int) -> None:
    """Ask the questions that have no answer yet."""
    try:
        probe(match_id)
    finally:
        close_old_connections()
