"""Registration of the runs app."""

from typing import Any

from django.apps import AppConfig

from webapp.scenarios.signals import version_closed


def _flag_runs(*, version: Any, **_options: Any) -> None:
    from webapp.runs.withdrawn import flag_runs

    flag_runs(version=version)


class RunsConfig(AppConfig):
    """Training runs, their attempts, curves, episodes and checkpoints."""

    name = "webapp.runs"
    label = "runs"

    def ready(self) -> None:
        """Follow the datasets: a version that is closed flags its runs."""
        version_closed.connect(_flag_runs, dispatch_uid="runs.withdrawn")
