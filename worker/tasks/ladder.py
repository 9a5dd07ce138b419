"""The short task that fits the ladder of one game."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import RATE
from webapp.ladder import services


@shared_task(name=RATE.name)
def refit(game: str) -> None:
    """Fit the game's ladder if its log has changed and no other worker fits it."""
    try:
        services.refit(game=game)
    finally:
        close_old_connections()
