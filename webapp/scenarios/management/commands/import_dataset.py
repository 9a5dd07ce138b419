"""Imports a dataset file or folder; exits 2 and stores nothing if anything in it is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from training.errors import BadInput
from webapp.accounts.services import owner_named
from webapp.scenarios import importers, imports, services


class Command(BaseCommand):
    help = "Import a dataset. Exit codes: 0 stored, 2 nothing stored because something is wrong."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("format", choices=sorted(importers.FORMATS), help="how the data is written")
        parser.add_argument(
            "path",
            type=Path,
            help="the file; for sotopia-jsonl and werewolf9 the folder of files; for sotopia-episodes either",
        )
        parser.add_argument("--name", required=True, help="name of the dataset: letters, digits, hyphens")
        parser.add_argument("--owner", default="", help="who owns it (default: the first admin)")
        parser.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"option of the format; may be repeated. {_options()}",
        )
        parser.add_argument(
            "--codebook", default="", help="of files of labels: the codebook, such as negotiation-moves or “NAME v1”"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        reading = importers.Reading()
        version = None
        try:
            owner = owner_named(options["owner"])
            services.check_name(options["name"])
            reading, version = imports.import_path(
                format=options["format"], path=options["path"], name=options["name"], owner=owner,
                options=_chosen(options["option"], options["codebook"]),
            )  # fmt: skip
        except BadInput as error:
            reading.error(error)
        if options["json"]:
            self.stdout.write(json.dumps(reading.report(), ensure_ascii=False))
        else:
            self._say(reading, str(version) if version else "")
        if reading.errors:
            sys.exit(2)

    def _say(self, reading: importers.Reading, version: str) -> None:
        for error in reading.errors:
            self.stderr.write(f"error: {error['where']}: {error['why']}")
        for notice in reading.notices:
            self.stderr.write(f"notice: {notice['where']}: {notice['why']}")
        counts = f"{len(reading.lines)} scenarios, {reading.conversations} conversations"
        if reading.with_judgments:
            counts += f", {reading.judgments} judgments with {reading.labels} labels"
        self.stdout.write(f"{counts}; {'stored as ' + version if version else 'nothing stored'}")


def _options() -> str:
    """Return the names of all options, each with the formats that have it."""
    formats: dict[str, list[str]] = {}
    for name, fmt in importers.FORMATS.items():
        for option in fmt.options.model_fields if fmt.options else ():
            formats.setdefault(option, []).append(name)
    return "; ".join(f"{option} ({', '.join(names)})" for option, names in formats.items())


def _chosen(pairs: list[str], codebook: str) -> dict[str, str]:
    """Return the options; raise `BadInput` for one without a value, or named twice."""
    chosen = {"codebook": codebook} if codebook else {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or name in chosen:
            raise BadInput("named twice" if separator else f"expected NAME=VALUE, not {pair!r}", f"--option {name}")
        chosen[name] = value
    return chosen
