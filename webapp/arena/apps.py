"""Registration of the arena app."""

from django.apps import AppConfig


class ArenaConfig(AppConfig):
    """The table where people and models play."""

    name = "webapp.arena"
    label = "arena"
    default_auto_field = "django.db.models.BigAutoField"
