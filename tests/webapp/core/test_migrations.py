"""The migrations make the tables that the models describe: one for each app, and nothing is left to make."""

from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command

OURS = [config for config in apps.get_app_configs() if config.name.startswith("webapp.") and any(config.get_models())]


@pytest.mark.django_db
def test_nothing_is_left_to_migrate(capsys):
    call_command("makemigrations", check=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out


@pytest.mark.parametrize("config", OURS, ids=lambda config: config.label)
def test_an_app_begins_with_one_migration(config):
    found = sorted(path.name for path in (Path(config.path) / "migrations").glob("0*.py"))
    assert found == ["0001_initial.py"]
