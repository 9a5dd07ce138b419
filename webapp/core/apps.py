"""Registration of the core app; importing the apps' `clock` modules makes their steps known."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    """Collects the clock steps of all apps once they are loaded."""

    name = "webapp.core"
    label = "core"

    def ready(self) -> None:
        """Import every app's `clock.py`, if it has one."""
        autodiscover_modules("clock")
