from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("arena", "0021_chat_reports")]

    operations = [
        migrations.AlterField(
            model_name="match",
            name="shown_as",
            field=models.CharField(
                blank=True,
                choices=[
                    ("person", "a person"),
                    ("model", "a model"),
                    ("unknown", "a person or a model"),
                    ("computer", "a computer player"),
                ],
                help_text="In an experiment, what players read of each other; its own pages come before and after.",
                max_length=8,
            ),
        ),
    ]
