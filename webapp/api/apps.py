"""Registration of the api app."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """The REST API."""

    name = "webapp.api"
    label = "api"
