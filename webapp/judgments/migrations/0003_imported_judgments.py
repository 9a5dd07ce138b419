"""What the new columns say of older rows; judgments that came with conversations become rows."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import F, Q

from training.rewards.rubrics import Rubric
from webapp.judgments.imported import judgment_fields


def keep_times(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Judgments until here were last saved when they were made, as far as is known."""
    judgments = apps.get_model("judgments", "Judgment").objects.using(schema_editor.connection.alias)
    judgments.filter(updated_at=None).update(updated_at=F("created_at"))


def close_ratings(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Whoever has guessed or rated after a game has voted."""
    alias = schema_editor.connection.alias
    seats = apps.get_model("arena", "MatchSeat").objects.using(alias)
    rated = seats.filter(Q(guesses__isnull=False) | Q(judgments__isnull=False)).distinct()
    closed = apps.get_model("judgments", "GameRating")
    closed.objects.using(alias).bulk_create([closed(by=seat, voted=True) for seat in rated], ignore_conflicts=True)


def read_imported(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Judgments that came with conversations become rows, as those of later imports do."""
    alias = schema_editor.connection.alias
    versions = apps.get_model("judgments", "RubricVersion").objects.using(alias).select_related("rubric")
    rows = {(row.rubric.name, row.number): row for row in versions}
    rubrics = {
        key: Rubric(name=key[0], version=key[1], title=row.title, dimensions=row.dimensions)
        for key, row in rows.items()
    }
    judgment = apps.get_model("judgments", "Judgment")
    conversations = apps.get_model("scenarios", "StoredConversation").objects.using(alias).exclude(judgments=[])
    for stored in conversations.iterator(chunk_size=1000):
        judgment.objects.using(alias).bulk_create(
            judgment(conversation=stored, rubric_version=rows[key], **fields)
            for key, fields in judgment_fields(stored.data, stored.judgments, rubrics)
        )


def drop_conversations(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The tables before this migration cannot hold judgments of conversations, or by outside authors."""
    alias = schema_editor.connection.alias
    for name in ("Judgment", "Target"):
        apps.get_model("judgments", name).objects.using(alias).filter(conversation__isnull=False).delete()


class Migration(migrations.Migration):
    dependencies = [("judgments", "0002_conversations"), ("arena", "0004_rules"), ("scenarios", "0001_initial")]

    operations = [
        migrations.RunPython(keep_times, migrations.RunPython.noop),
        migrations.RunPython(close_ratings, migrations.RunPython.noop),
        migrations.RunPython(read_imported, drop_conversations),
    ]
