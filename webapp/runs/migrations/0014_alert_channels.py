from django.db import migrations, models


class Migration(migrations.Migration):
    """Channels stand in the code; the column has room for their names."""

    dependencies = [("runs", "0013_alert_words")]

    operations = [
        migrations.AlterField(
            "AlertRule",
            "channel",
            models.CharField(help_text="A name of `webapp.runs.alerts.channels.CHANNELS`.", max_length=20),
        ),
    ]
