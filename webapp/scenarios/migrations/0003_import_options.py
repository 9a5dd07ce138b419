from django.db import migrations, models


class Migration(migrations.Migration):
    """Imports keep the options of their format; earlier imports have none."""

    dependencies = [("scenarios", "0002_episode_sha256")]

    operations = [
        migrations.AddField(
            model_name="import",
            name="options",
            field=models.JSONField(default=dict, help_text="Options of its format, by name."),
        ),
    ]
