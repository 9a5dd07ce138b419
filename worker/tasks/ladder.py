"""The short task that fits the ladder of one game."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import RATE
from webapp.ladder import services


@shared_task(name=RATE.name)
def refit(game: str) -> None:
    """Fit the game's ladder anew if its log has changed and nobody else is at it."""
    try:
        services.refit(game=game)
    finally:
        close_old_connections()
