"""Writes a dataset version as JSONL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.scenarios.models import Dataset
from webapp.scenarios.services import lines_of


class Command(BaseCommand):
    help = "Export a dataset version as JSONL, to a file or standard output. Exit codes: 0 written, 2 not found."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the dataset")
        parser.add_argument("--number", type=int, default=0, help="version (default: the newest)")
        parser.add_argument("--output", type=Path, help="file to write (default: standard output)")

    def handle(self, *args: Any, **options: Any) -> None:
        dataset = Dataset.objects.filter(name=options["name"]).first()
        if dataset is None:
            raise CommandError(f"no dataset is named {options['name']!r}", returncode=2)
        version = dataset.versions.filter(number=options["number"]).first() if options["number"] else dataset.newest()
        if version is None:
            raise CommandError(f"{dataset} has no version {options['number']}", returncode=2)
        if options["output"] is None:
            for line in lines_of(version):
                sys.stdout.write(line.dumps() + "\n")
            return
        with options["output"].open("w", encoding="utf-8") as file:
            for line in lines_of(version):
                file.write(line.dumps() + "\n")
        self.stderr.write(f"{version}: {version.scenario_count} scenarios written to {options['output']}")
