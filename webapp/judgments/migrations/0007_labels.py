"""What labels replace is dropped, and labels get their constraint; in a transaction after the one that wrote the rows."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judgments", "0006_codebooks"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.RemoveField(
            model_name="judgment",
            name="reasons",
        ),
        migrations.RemoveField(
            model_name="judgment",
            name="values",
        ),
        migrations.AlterField(
            model_name="codebook",
            name="owner",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="codebooks",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="codebookversion",
            name="labels",
            field=models.JSONField(help_text="Label types; see `training.labels.codebooks.LabelType`."),
        ),
        migrations.AlterField(
            model_name="judgment",
            name="history",
            field=models.JSONField(default=list, help_text="Earlier answers of its author: [{labels, reason, at}]."),
        ),
        migrations.AlterField(
            model_name="judgment",
            name="reason",
            field=models.TextField(blank=True, help_text="Why it could not be scored, or a comment."),
        ),
        migrations.AlterField(
            model_name="judgment",
            name="seat",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="label",
            name="name",
            field=models.CharField(
                help_text="The label type's name in the judgment's codebook version.", max_length=40
            ),
        ),
        migrations.AlterField(
            model_name="queue",
            name="left_out",
            field=models.JSONField(
                default=list, help_text="Seats that the codebook asks nothing about, one line per game."
            ),
        ),
        migrations.AlterField(
            model_name="target",
            name="seat",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="label",
            index=models.Index(fields=["name"], name="label_name"),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.UniqueConstraint(
                fields=("judgment", "name", "seat", "turn", "start", "end", "other_turn"),
                name="label_place_once",
                nulls_distinct=False,
            ),
        ),
    ]
