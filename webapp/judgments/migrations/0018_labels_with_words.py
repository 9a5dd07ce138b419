from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [("judgments", "0017_terms_of_queues")]

    operations = [
        migrations.AddIndex(
            "Label",
            models.Index(fields=["judgment"], condition=~Q(reason="") | ~Q(text=""), name="label_with_words"),
        ),
    ]
