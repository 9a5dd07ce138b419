"""`manage.py check_health`: what is up and what is not. Exits 1 when something is missing."""

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from webapp.core import health


class Command(BaseCommand):
    """Database, Redis, clocks and workers."""

    help = "Say whether database, Redis, clock and workers are alive; exit 1 if not."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """`--json` prints one JSON object."""
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the state."""
        state = health.check()
        if options["json"]:
            self.stdout.write(json.dumps(state))
        else:
            for part in (state["database"], state["redis"], *state["clocks"], *state["workers"]):
                self.stdout.write(f"{'ok ' if part['ok'] else 'BAD'} {part['name']} {part['why']}".rstrip())
            for problem in state["problems"]:
                self.stderr.write(problem)
        if not state["ok"]:
            sys.exit(1)
