"""Registration of the corpora app."""

from django.apps import AppConfig


class CorporaConfig(AppConfig):
    """Corpora of passages and their indexes."""

    name = "webapp.corpora"
    label = "corpora"
