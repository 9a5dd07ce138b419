"""Registration of the home app."""

from django.apps import AppConfig


class HomeConfig(AppConfig):
    """The first page and what is running now."""

    name = "webapp.home"
    label = "home"
    default_auto_field = "django.db.models.BigAutoField"
