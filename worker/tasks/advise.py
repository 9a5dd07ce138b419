"""The task in which a coach advises a person at a table."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import ADVISE
from worker.advise import advise


@shared_task(name=ADVISE.name)
def answer_advice(advice_id: int) -> None:
    """Answer one request."""
    try:
        advise(advice_id)
    finally:
        close_old_connections()
