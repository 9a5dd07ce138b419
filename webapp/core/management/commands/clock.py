"""`manage.py clock`: runs due steps, twice a second, until asked to stop. Needs the database, no broker."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from webapp.core import clock


class Command(BaseCommand):
    """Deadlines, lapsed leases and repeated hints."""

    help = "Play defaults at deadlines, requeue lapsed attempts and repeat hints, twice a second."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        clock.run(stopped.is_set)
