import django.db.models.deletion
from django.db import migrations, models

FILL = """
UPDATE judgments_judgment judgment SET queue_id = target.queue_id
FROM judgments_target target WHERE target.id = judgment.target_id
"""
SAME_QUEUE = """
ALTER TABLE judgments_judgment ADD CONSTRAINT judgment_in_queue_of_target
FOREIGN KEY (target_id, queue_id) REFERENCES judgments_target (id, queue_id) MATCH FULL DEFERRABLE INITIALLY DEFERRED
"""
"""Both are null, or they are a target and its queue."""


class Migration(migrations.Migration):

    dependencies = [("judgments", "0019_labels_that_are_there")]

    operations = [
        migrations.AddField(
            "Judgment",
            "queue",
            models.ForeignKey(
                "judgments.Queue",
                null=True,
                editable=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="judgments",
                db_index=False,
                help_text="That of its target: a queue's judgments are read without their targets.",
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddConstraint("Target", models.UniqueConstraint(fields=["id", "queue"], name="target_with_queue")),
        migrations.RunSQL(SAME_QUEUE, "ALTER TABLE judgments_judgment DROP CONSTRAINT judgment_in_queue_of_target"),
        migrations.AddIndex(
            "Judgment",
            models.Index(
                fields=["queue", "author", "id"],
                include=["target", "match", "conversation", "decides", "unscored", "seconds", "updated_at"],
                name="judgment_in_queue",
            ),
        ),
    ]
