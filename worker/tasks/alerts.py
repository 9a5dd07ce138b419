"""The task that sends alerts."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import ALERT
from webapp.runs.alerts import sending


@shared_task(name=ALERT.name)
def send_alerts() -> None:
    """Send every alert that is due."""
    try:
        sending.send_due()
    finally:
        close_old_connections()
