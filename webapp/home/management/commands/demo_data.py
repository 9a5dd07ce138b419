"""Creates demo data: the sample scenarios as datasets, the sample runs, and one admin."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from training import samples
from training.dataset import DatasetLine
from training.games import lookup
from webapp.accounts.models import Role, User
from webapp.home import samples as sample_runs
from webapp.runs.services import register_bases
from webapp.scenarios.models import Dataset
from webapp.scenarios.services import create_dataset

NAME = "demo"
KEPT = settings.HOME / "demo-password"


class Command(BaseCommand):
    help = "Make the sample datasets and the demo user; what is there already is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--password", default="", help="password of the demo user (default: made up, kept and printed)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = _person(options["password"])
        for name in samples.names():
            if not Dataset.objects.filter(name=f"sample-{name}").exists():
                lines = [DatasetLine(scenario=scenario) for scenario in samples.load(name)]
                create_dataset(
                    name=f"sample-{name}", owner=user, lines=lines, source="Parley's own", licence="Apache-2.0",
                    title=_title(name, lines),
                )  # fmt: skip
        register_bases()
        sample_runs.install()
        password = KEPT.read_text("utf-8") if KEPT.exists() else ""
        hint = (
            f"with the password {password}" if user.check_password(password) else "with the password that you gave it"
        )
        self.stdout.write(f"Sign in as {NAME} {hint}.")


def _title(name: str, lines: Sequence[DatasetLine]) -> str:
    """Return the titles of the games in a sample, and the sample's name where a game has several samples."""
    games = [lookup(game) for game in dict.fromkeys(line.scenario.game for line in lines)]
    titles = ", ".join(game.title for game in games)
    return f"{titles} ({name})" if any(len(game.samples) > 1 for game in games) else titles


def _person(password: str) -> User:
    """Return the demo user; a password made up for a new one is kept in a file that only its owner can read."""
    user = User.objects.filter(username=NAME).first()
    if user is not None and not password:
        return user
    user = user or User(username=NAME, role=Role.ADMIN)
    if not password:
        password = secrets.token_urlsafe(9)
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.touch(mode=0o600)
        KEPT.write_text(password, "utf-8")
    user.set_password(password)
    user.save()
    return user
