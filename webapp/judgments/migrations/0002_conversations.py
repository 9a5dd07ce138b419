"""Imported conversations as targets, outside authors, when a judgment was saved, and ratings that are closed."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

from training.rewards.rubrics import Rubric
from webapp.judgments.imported import judgment_fields


def keep_times(apps, schema_editor):
    """Judgments until here were last saved when they were made, as far as is known."""
    judgments = apps.get_model("judgments", "Judgment").objects.using(schema_editor.connection.alias)
    judgments.filter(updated_at=None).update(updated_at=F("created_at"))


def close_ratings(apps, schema_editor):
    """Whoever has guessed or rated after a game has voted."""
    alias = schema_editor.connection.alias
    seats = apps.get_model("arena", "MatchSeat").objects.using(alias)
    rated = seats.filter(Q(guesses__isnull=False) | Q(judgments__isnull=False)).distinct()
    closed = apps.get_model("judgments", "GameRating")
    closed.objects.using(alias).bulk_create([closed(by=seat, voted=True) for seat in rated], ignore_conflicts=True)


def read_imported(apps, schema_editor):
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


def drop_conversations(apps, schema_editor):
    """The tables before this migration cannot hold judgments of conversations, or by outside authors."""
    alias = schema_editor.connection.alias
    for name in ("Judgment", "Target"):
        apps.get_model("judgments", name).objects.using(alias).filter(conversation__isnull=False).delete()
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # PostgreSQL alters no table that has checks pending


class Migration(migrations.Migration):
    dependencies = [
        ("arena", "0004_rules"),
        ("judgments", "0001_initial"),
        ("runs", "0001_initial"),
        ("scenarios", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GameRating",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "voted",
                    models.BooleanField(
                        help_text="False: the other seats were revealed without a vote, which is refused now."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="game_rating", to="arena.matchseat"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="queue",
            name="left_out",
            field=models.JSONField(default=list, help_text="Seats that the rubric asks nothing about, a line a game."),
        ),
        migrations.AddField(
            model_name="queue",
            name="exported_at",
            field=models.DateTimeField(blank=True, help_text="When it was last exported.", null=True),
        ),
        migrations.AddField(
            model_name="judgment",
            name="outside_author",
            field=models.CharField(
                blank=True,
                default="",
                help_text="The author's name in the imported file; not an account of this site.",
                max_length=200,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="judgment",
            name="history",
            field=models.JSONField(default=list, help_text="Earlier answers of its author: [{values, reason, at}]."),
        ),
        migrations.AddField(
            model_name="judgment",
            name="updated_at",
            field=models.DateTimeField(
                blank=True, help_text="When its author last saved it; empty if an import does not say.", null=True
            ),
        ),
        migrations.AddField(
            model_name="judgment",
            name="conversation",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="judgment_rows",
                to="scenarios.storedconversation",
            ),
        ),
        migrations.AddField(
            model_name="target",
            name="conversation",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="targets",
                to="scenarios.storedconversation",
            ),
        ),
        migrations.RemoveConstraint(model_name="target", name="target_is_match_or_episode"),
        migrations.RunPython(migrations.RunPython.noop, drop_conversations),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.CheckConstraint(
                condition=Q(match__isnull=False, episode__isnull=True, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=False, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=True, conversation__isnull=False),
                name="target_is_one_game",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.UniqueConstraint(
                condition=~Q(outside_author=""),
                fields=["conversation", "seat", "rubric_version", "outside_author"],
                name="one_outside_judgment_a_seat",
            ),
        ),
        migrations.RunPython(keep_times, migrations.RunPython.noop),
        migrations.RunPython(close_ratings, migrations.RunPython.noop),
        migrations.RunPython(read_imported, migrations.RunPython.noop),
    ]
