from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("judgments", "0014_suggestions_answered")]

    operations = [
        migrations.AddIndex("Target", models.Index(fields=["queue", "state"], name="target_state_in_queue")),
    ]
