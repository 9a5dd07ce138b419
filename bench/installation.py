"""A site in a temporary folder with its own embedded databases, for measurements; the folder is removed at the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module


@contextmanager
def installation(name: str) -> Iterator[None]:
    """Configure this process for a fresh, migrated installation; stop its databases at the end."""
    with tempfile.TemporaryDirectory(prefix=f"parley-{name}-") as home:
        os.environ |= {"PARLEY_HOME": home, "DJANGO_SETTINGS_MODULE": "webapp.settings", "PARLEY_ENV": "development"}
        for variable in ("DATABASE_URL", "REDIS_URL"):
            os.environ.pop(variable, None)
        embedded = import_module("webapp.core.embedded")
        embedded.join()
        try:
            import_module("django").setup()
            import_module("django.core.management").call_command("migrate", verbosity=0)
            yield
        finally:
            import_module("django.db").connections.close_all()
            embedded.leave(embedded.servers(), embedded.home(), os.getpid(), last=True)
