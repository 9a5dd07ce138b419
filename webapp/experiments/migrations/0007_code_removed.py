from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0006_shortest_wait_s")]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="code_removed",
            field=models.CharField(
                blank=True,
                help_text="Empty: whoever is removed reads that they should ask the researchers about payment.",
                max_length=60,
                verbose_name="code when removed by the facilitator",
            ),
        ),
    ]
