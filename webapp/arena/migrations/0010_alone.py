"""Tables with one seat: which task is played, and beside whose play."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("arena", "0009_strategists")]

    operations = [
        migrations.AddField(
            model_name="match",
            name="task",
            field=models.CharField(
                blank=True,
                db_index=True,
                help_text="Hash of what is played at a table with one seat: plays with the same hash are of the same task.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="match",
            name="beside",
            field=models.ForeignKey(
                blank=True,
                help_text="The person's play of the same task with which this play of a model is compared.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="companions",
                to="arena.match",
            ),
        ),
    ]
