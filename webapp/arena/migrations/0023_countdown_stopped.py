from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("arena", "0022_shown_as_computer")]

    operations = [
        migrations.AddField(
            model_name="match",
            name="countdown_stopped",
            field=models.BooleanField(
                default=False,
                help_text="Whether its host stopped the countdown: the next answer does not start it again.",
            ),
        ),
    ]
