"""Registration of the judgments app; the rubrics that come with Parley are loaded after every migrate."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _load_rubrics(**_options: Any) -> None:
    from webapp.judgments.services import load_rubrics

    load_rubrics()


class JudgmentsConfig(AppConfig):
    """Rubrics, judgments and queues."""

    name = "webapp.judgments"
    label = "judgments"

    def ready(self) -> None:
        """Load the rubrics once the tables are there."""
        post_migrate.connect(_load_rubrics, sender=self)
