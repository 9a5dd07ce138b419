"""Registration of the judgments app."""

from django.apps import AppConfig


class JudgmentsConfig(AppConfig):
    """Rubrics, judgments and exports."""

    name = "webapp.judgments"
    label = "judgments"
    default_auto_field = "django.db.models.BigAutoField"
