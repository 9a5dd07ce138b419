"""Registration of the scenarios app."""

from django.apps import AppConfig


class ScenariosConfig(AppConfig):
    """Datasets of scenarios and conversations."""

    name = "webapp.scenarios"
    label = "scenarios"
