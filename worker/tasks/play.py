"""The short task in which a model or a script makes one move."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import PLAY
from worker.play import play


@shared_task(name=PLAY.name)
def play_seat(due_id: int) -> None:
    """Make the move of one due seat."""
    try:
        play(due_id)
    finally:
        close_old_connections()
