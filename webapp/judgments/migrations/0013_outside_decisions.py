from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [("judgments", "0012_classifiers_and_suggestion_runs")]

    operations = [
        migrations.RemoveConstraint("Judgment", "one_outside_judgment_a_seat"),
        migrations.AddConstraint(
            "Judgment",
            models.UniqueConstraint(
                fields=["conversation", "seat", "codebook_version", "outside_author", "decides"],
                condition=~Q(outside_author=""),
                nulls_distinct=False,
                name="one_outside_judgment_a_seat",
            ),
        ),
    ]
