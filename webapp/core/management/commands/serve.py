"""`manage.py serve`: the site under uvicorn, with the limits that sockets and forwarding headers need."""

import sys
import tempfile
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from webapp.core.sockets import LARGEST_MESSAGE


class Command(BaseCommand):
    """Pages and sockets in one process."""

    help = "Serve the site over HTTP and WebSockets."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to listen."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        sys.setswitchinterval(settings.SWITCH_SECONDS)
        settings.UPLOADS_ROOT.mkdir(parents=True, exist_ok=True)
        tempfile.tempdir = str(settings.UPLOADS_ROOT)  # on many machines /tmp is memory, too small for a corpus
        uvicorn.run(
            "webapp.asgi:application",
            host=options["host"],
            port=options["port"],
            log_level="warning",
            proxy_headers=bool(settings.TRUSTED_PROXIES),
            forwarded_allow_ips=settings.TRUSTED_PROXIES or None,
            ws_max_size=LARGEST_MESSAGE,
            ws_max_queue=16,
            timeout_graceful_shutdown=5,
            server_header=False,
            lifespan="off",
        )
