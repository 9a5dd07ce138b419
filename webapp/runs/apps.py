"""Registration of the runs app."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Training runs, their attempts, curves, episodes and checkpoints."""

    name = "webapp.runs"
    label = "runs"
