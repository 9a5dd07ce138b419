"""Registration of the home app."""

from django.apps import AppConfig


class HomeConfig(AppConfig):
    """The first page, the guided tour, search, and what is running now."""

    name = "webapp.home"
    label = "home"
