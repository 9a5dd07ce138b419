"""Stores the sample runs, or removes them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from training.errors import BadInput
from webapp.home import samples


class Command(BaseCommand):
    help = "Store the recordings of real runs that come with Parley; what is there already is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--remove", action="store_true", help="remove all sample runs and their files instead")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = samples.remove() if options["remove"] else len(samples.install(again=True))
        except BadInput as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count} sample runs were {'removed' if options['remove'] else 'stored'}.")
