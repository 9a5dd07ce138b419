"""Tables for imported conversations as targets, outside authors, changed judgments and closed ratings."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


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
            field=models.JSONField(
                default=list, help_text="Seats that the rubric asks nothing about, one line per game."
            ),
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
    ]
