"""Registration of the serving app."""

from django.apps import AppConfig


class ServingConfig(AppConfig):
    """Models that are served for the table."""

    name = "webapp.serving"
    label = "serving"
