"""Writes a dataset version as JSONL, to a file that is whole or not there, or to standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from training.errors import BadInput
from training.store import atomic_file
from webapp.scenarios.models import Dataset, DatasetVersion
from webapp.scenarios.services import check_open, lines_of


class Command(BaseCommand):
    help = (
        "Export a dataset version as JSONL, to a file or standard output. "
        "Exit codes: 0 written, 2 not found or not written; an existing file is then unchanged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the dataset")
        parser.add_argument("--number", type=int, default=0, help="version (default: the newest)")
        parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
        parser.add_argument("--force", action="store_true", help="replace the file if it exists")

    def handle(self, *args: Any, **options: Any) -> None:
        version, output = _version(options["name"], options["number"]), options["output"]
        if output is None:
            _write(version, sys.stdout)
            return
        _check(output, force=options["force"])
        try:
            with atomic_file(output) as file:
                _write(version, file)
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror}", returncode=2) from error
        self.stderr.write(f"{version}: {version.scenario_count} scenarios written to {output}")


def _version(name: str, number: int) -> DatasetVersion:
    dataset = Dataset.objects.filter(name=name).first()
    if dataset is None:
        raise CommandError(f"no dataset is named {name!r}", returncode=2)
    version = dataset.versions.filter(number=number).first() if number else dataset.newest()
    if version is None:
        raise CommandError(f"{dataset} has no version {number}", returncode=2)
    try:
        check_open(version)
    except BadInput as error:
        raise CommandError(error.why, returncode=2) from error
    return version


def _check(output: Path, *, force: bool) -> None:
    """Raise `CommandError` where a file would be replaced unasked, or something else than a file at all."""
    if output.exists() and not output.is_file():
        raise CommandError(f"{output} is not a file; without --output, standard output is written", returncode=2)
    if output.exists() and not force:
        raise CommandError(f"{output} exists already; --force replaces it", returncode=2)


def _write(version: DatasetVersion, file: TextIO) -> None:
    file.writelines(line.dumps() + "\n" for line in lines_of(version))
