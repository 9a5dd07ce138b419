"""Registration of the runs app."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete

from webapp.scenarios.signals import version_closed


def _flag_runs(*, version: Any, **_options: Any) -> None:
    from webapp.runs.withdrawn import flag_runs

    flag_runs(version=version)


def _remember_deleted(*, instance: Any, **_options: Any) -> None:
    from webapp.runs.models import DeletedRun

    DeletedRun.objects.bulk_create([DeletedRun(run_id=instance.pk)], ignore_conflicts=True)


class RunsConfig(AppConfig):
    """Training runs, their attempts, curves, episodes and checkpoints."""

    name = "webapp.runs"
    label = "runs"

    def ready(self) -> None:
        """A dataset version that is closed flags its runs; the number of a run that is deleted is kept."""
        version_closed.connect(_flag_runs, dispatch_uid="runs.withdrawn")
        post_delete.connect(_remember_deleted, sender=self.get_model("Run"), dispatch_uid="runs.deleted")
