"""Registration of the privacy app."""

from django.apps import AppConfig


class PrivacyConfig(AppConfig):
    """Copies of people's own data, deletion of accounts, and the progress of withdrawals."""

    name = "webapp.privacy"
    label = "privacy"
