"""Writes the labels of a queue in one of the formats, atomically to a file, or to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from training.errors import BadInput
from training.labels.exchange import FORMATS, format_named
from training.store import atomic_file
from webapp.judgments.datasets.files import LabelFile, labels_of
from webapp.judgments.models import Queue


class Command(BaseCommand):
    help = (
        "Export the labels of a queue, with those that came with its games, to a file or standard output. "
        "Exit codes: 0 written, 2 not found or not written; an existing file is then unchanged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", type=int, help="number of the queue, as in the address of its page")
        parser.add_argument("--format", default="jsonl", help=f"one of {', '.join(FORMATS)} (default: jsonl)")
        parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
        parser.add_argument("--force", action="store_true", help="replace the file if it exists")
        parser.add_argument(
            "--config", type=Path, help="of label-studio: write the labeling configuration of the project to this file"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        output, config = options["output"], options["config"]
        try:
            fmt = format_named(options["format"])
            if config is not None and fmt.name != "label-studio":
                raise BadInput("only label-studio has a labeling configuration", "--config")
            queue = Queue.objects.select_related("codebook_version__codebook").filter(pk=options["queue"]).first()
            if queue is None:
                raise BadInput(f"there is no queue {options['queue']}", "queue")
            labels = labels_of(queue, fmt, None)
        except BadInput as error:
            raise CommandError(str(error), returncode=2) from error
        for path in filter(None, (output, config)):
            _check(path, force=options["force"])
        if output is None:
            sys.stdout.writelines(labels.pieces())
        else:
            _write(output, labels.pieces())
        if config is not None:
            _write(config, [labels.labeling_config()])
        self._say(labels, output)

    def _say(self, labels: LabelFile, output: Path | None) -> None:
        for reason in labels.export.left_out:
            self.stderr.write(f"left out: {reason}")
        if output is not None:
            self.stderr.write(f"labels of queue {labels.queue.pk} written to {output}")


def _check(path: Path, *, force: bool) -> None:
    """Raise `CommandError` where a file would be replaced unasked, or something else than a file at all."""
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is not a file; without --output, standard output is written", returncode=2)
    if path.exists() and not force:
        raise CommandError(f"{path} exists already; --force replaces it", returncode=2)


def _write(path: Path, pieces: Iterable[str]) -> None:
    try:
        with atomic_file(path) as file:
            file.writelines(pieces)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", returncode=2) from error
