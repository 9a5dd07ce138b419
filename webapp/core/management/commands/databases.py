"""`manage.py databases`: the embedded PostgreSQL and Valkey in the foreground, for the process manager.

Ends with 1 when one of them dies, so that the process manager starts both again.
"""

import os
import signal
import sys
import threading
from typing import Any

from django.core.management.base import BaseCommand

from webapp.core import embedded


class Command(BaseCommand):
    """Keeps the embedded servers running until asked to stop, and stops them for everyone."""

    help = "Run the embedded databases in the foreground (nothing to do where DATABASE_URL and REDIS_URL are set)."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Wait for SIGTERM or SIGINT; `manage.py` has started the servers already."""
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        servers = embedded.servers()
        while not stopped.wait(1.0):
            if not all(server.running() for server in servers):
                self.stderr.write("an embedded database has stopped")
                sys.exit(1)
        embedded.leave(servers, embedded.home(), os.getpid(), last=True)
