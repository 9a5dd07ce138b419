"""Registration of the ladder app."""

from django.apps import AppConfig


class LadderConfig(AppConfig):
    """Ratings, win matrix, endings."""

    name = "webapp.ladder"
    label = "ladder"
