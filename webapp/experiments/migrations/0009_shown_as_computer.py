from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0008_resume_token_hash")]

    operations = [
        migrations.AlterField(
            model_name="arm",
            name="shown_as",
            field=models.CharField(
                choices=[
                    ("person", "a person"),
                    ("model", "a model"),
                    ("unknown", "a person or a model"),
                    ("computer", "a computer player"),
                ],
                max_length=8,
            ),
        ),
    ]
