"""Fits the ladders to the log of matches; `--check` only compares the stored ladder with the log."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from training.games import REGISTRY
from webapp.ladder import services


class Command(BaseCommand):
    help = "Fit the ladder of each game whose log has changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("games", nargs="*", metavar="game", help="which games (default: all)")
        parser.add_argument("--check", action="store_true", help="exit 1 if the stored ladder differs from the log")

    def handle(self, *args: Any, **options: Any) -> None:
        unknown = sorted(set(options["games"]) - REGISTRY.keys())
        if unknown:
            names = ", ".join(sorted(REGISTRY))
            raise CommandError(f"unknown game {unknown[0]!r}; known: {names}", returncode=2)
        wrong = []
        for game in options["games"] or sorted(REGISTRY):
            if options["check"]:
                differing = services.differences(game)
                self.stdout.write(f"{game}: {'differs in ' + ', '.join(differing) if differing else 'as the log says'}")
                wrong += differing
            else:
                fit = services.refit(game=game)
                outcome = "another process is at it" if fit is None else f"{fit.matches} matches"
                self.stdout.write(f"{game}: {outcome}")
        if wrong:
            raise CommandError("the stored ladder differs from the log")
