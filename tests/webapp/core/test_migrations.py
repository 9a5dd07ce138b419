"""The migrations make the tables that the models describe: one chain for each app, and nothing is left to make."""

from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from tests.webapp.judgments.make import conversation, finished_match, imported
from training.dataset import episode_hash
from webapp.arena.models import Match
from webapp.scenarios.models import StoredConversation
from webapp.scenarios.services import fork

OURS = [config for config in apps.get_app_configs() if config.name.startswith("webapp.") and any(config.get_models())]


@pytest.mark.django_db
def test_nothing_is_left_to_migrate(capsys):
    call_command("makemigrations", check=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize("config", OURS, ids=lambda config: config.label)
def test_an_apps_migrations_are_one_chain(config):
    """An installation goes from any of them to the next: none is changed afterwards, and no two follow the same one."""
    names = sorted(path.stem for path in (Path(config.path) / "migrations").glob("0*.py"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    graph = MigrationLoader(connection).graph
    assert graph.root_nodes(config.label) == [(config.label, names[0])]
    assert graph.leaf_nodes(config.label) == [(config.label, names[-1])]


@pytest.mark.django_db
def test_stored_matches_give_the_numbers_of_a_seat_to_the_seat_and_back(researcher):
    match = finished_match(researcher)
    shared, of_seats = match.metrics, match.seat_metrics
    assert of_seats == {"0": {"points": 1}, "1": {"points": 4}}  # one pen is kept, two go over at 2 points each
    old = shared | {"points_0": 1, "points_1": 4}
    Match.objects.filter(pk=match.pk).update(metrics=old, seat_metrics={})
    migration = import_module("webapp.arena.migrations.0005_seat_metrics")
    migration.split(apps, connection.schema_editor())
    match.refresh_from_db()
    assert (match.metrics, match.seat_metrics) == (shared, of_seats)
    migration.join(apps, connection.schema_editor())
    match.refresh_from_db()
    assert match.metrics == old


@pytest.mark.django_db
def test_stored_conversations_get_the_hash_that_copies_of_them_have(researcher, monkeypatch):
    stored = imported(researcher, conversation(0), conversation(1), conversation(2))
    rows = StoredConversation.objects.order_by("pk")
    hashes = [episode_hash(row.data) for row in rows]
    assert len(set(hashes)) == 3
    assert [row.episode_sha256 for row in rows] == hashes, "as stored"
    rows.update(episode_sha256="")
    migration = import_module("webapp.scenarios.migrations.0002_episode_sha256")
    monkeypatch.setattr(migration, "BATCH", 2)
    migration.hash_episodes(apps, connection.schema_editor())
    assert [row.episode_sha256 for row in rows.all()] == hashes, "as migrated"
    copy = fork(version=stored, name="copy", by=researcher)
    copies = StoredConversation.objects.filter(scenario__version=copy).order_by("pk")
    assert [row.episode_sha256 for row in copies] == hashes, "as copied"
