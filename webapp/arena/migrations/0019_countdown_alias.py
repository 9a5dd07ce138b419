from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("arena", "0018_original_kind")]

    operations = [
        migrations.AddField(
            model_name="match",
            name="countdown_alias",
            field=models.CharField(
                blank=True, help_text="By which the countdown's model was chosen, if by one.", max_length=40
            ),
        ),
    ]
