"""The step to judgments of imported conversations keeps every judgment of an older database, and can be taken back."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.webapp.judgments.make import FIVES, conversation, conversation_queue, imported, outside, version
from webapp.judgments import services
from webapp.judgments.models import GameRating, Judgment, Target

pytestmark = pytest.mark.django_db(transaction=True)
OLD, NEW = ("judgments", "0001_initial"), ("judgments", "0005_rules")


def migrate(name):
    """Go to a state of the judgments' tables; returns its models."""
    executor = MigrationExecutor(connection)
    executor.migrate([name])
    return MigrationExecutor(connection).loader.project_state([name, ("arena", "0004_rules")]).apps


@pytest.fixture
def newest():
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_judgments_of_an_older_database_stay_and_imported_ones_become_rows(newest, researcher, annotator, player):
    from tests.webapp.judgments.make import finished_match, people_queue

    match = finished_match(researcher, player)
    queue = people_queue(researcher, match, [annotator])
    target = queue.targets.order_by("position")[0]
    services.annotate(target=target, by=annotator, values=FIVES, reason="kept")
    services.rate(
        by=match.seats.get(user=player), version=version(), values={0: FIVES}, guesses={0: services.Answer(person=True)}
    )
    stored = imported(researcher, conversation(0, (outside("gpt-4", 0, dict.fromkeys(FIVES, 2.0)),)))
    services.annotate(target=conversation_queue(researcher, stored).targets.first(), by=researcher, values=FIVES)
    kept = list(
        Judgment.objects.filter(conversation=None).order_by("pk").values("pk", "values", "reason", "created_at")
    )
    assert len(kept) == 2

    older = migrate(OLD)
    rows = older.get_model("judgments", "Judgment").objects.order_by("pk")
    assert list(rows.values("pk", "values", "reason", "created_at")) == kept, "the old tables hold what they can hold"
    assert older.get_model("judgments", "Target").objects.count() == 2

    migrate(NEW)  # the newest: the models below are those of today
    rows = Judgment.objects.filter(conversation=None).order_by("pk")
    assert list(rows.values("pk", "values", "reason", "created_at")) == kept
    assert [row.updated_at for row in rows] == [row["created_at"] for row in kept]
    assert [(row.history, row.rule) for row in rows] == [([], ""), ([], "")]
    assert (GameRating.objects.get().by, GameRating.objects.get().voted) == (match.seats.get(user=player), True)
    assert Target.objects.filter(match=match).count() == 2
    (imported_row,) = Judgment.objects.outside()
    assert (imported_row.outside_author, imported_row.seat, set(imported_row.values.values())) == ("gpt-4", 0, {2.0})
