"""Registration of the arena app."""

from django.apps import AppConfig


class ArenaConfig(AppConfig):
    """The table: matches, moves, sockets."""

    name = "webapp.arena"
    label = "arena"
