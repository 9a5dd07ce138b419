"""Registration of the experiments app."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    """Experiments with people."""

    name = "webapp.experiments"
    label = "experiments"
