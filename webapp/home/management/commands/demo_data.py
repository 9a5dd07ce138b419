"""Makes what a first look needs: the sample scenarios as datasets, and one person who may do everything."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from training import samples
from training.dataset import DatasetLine
from webapp.accounts.models import Role, User
from webapp.runs.services import register_bases
from webapp.scenarios.models import Dataset
from webapp.scenarios.services import create_dataset

NAME = "demo"
TITLES = {"items": "Item negotiations", "prices": "Price bargains", "dialogues": "Social dialogues"}


class Command(BaseCommand):
    help = "Make the sample datasets and the demo user; what is there already is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--password", default="", help="password of the demo user (default: made up and printed)")

    def handle(self, *args: Any, **options: Any) -> None:
        user, password = _person(options["password"])
        for name in samples.NAMES:
            if not Dataset.objects.filter(name=f"sample-{name}").exists():
                lines = [DatasetLine(scenario=scenario) for scenario in samples.load(name)]
                create_dataset(
                    name=f"sample-{name}", owner=user, lines=lines, title=TITLES[name], source="Parley's own",
                    licence="Apache-2.0",
                )  # fmt: skip
        register_bases()
        said = f"with the password {password}" if password else "with the password printed when it was made"
        self.stdout.write(f"Sign in as {NAME} {said}.\n(`manage.py changepassword {NAME}` sets another one.)")


def _person(password: str) -> tuple[User, str]:
    """Return the demo user and the password if it was set just now."""
    user = User.objects.filter(username=NAME).first()
    if user is not None and not password:
        return user, ""
    user = user or User(username=NAME, role=Role.ADMIN)
    chosen = password or secrets.token_urlsafe(9)
    user.set_password(chosen)
    user.save()
    return user, chosen
