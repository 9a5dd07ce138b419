from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [("judgments", "0018_labels_with_words")]

    operations = [
        migrations.AddIndex(
            "Label",
            models.Index(
                fields=["name", "-judgment", "id"], include=["seat", "turn"], condition=Q(value=True), name="label_yes"
            ),
        ),
    ]
