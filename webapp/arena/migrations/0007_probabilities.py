"""Beliefs of models whose server says how likely each choice is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("arena", "0006_pace")]

    operations = [
        migrations.AddField(
            model_name="seatbelief",
            name="probabilities",
            field=models.JSONField(help_text="Of each choice; empty where only the answer is known.", null=True),
        ),
    ]
