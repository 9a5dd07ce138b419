"""Registration of the accounts app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People, roles, guests and API keys."""

    name = "webapp.accounts"
    label = "accounts"
