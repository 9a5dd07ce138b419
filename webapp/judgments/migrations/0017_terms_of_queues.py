from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

OLD, NEW = "shared_out", "preassigned"


def forward(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("judgments", "Queue").objects.filter(assignment=OLD).update(assignment=NEW)


def backward(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("judgments", "Queue").objects.filter(assignment=NEW).update(assignment=OLD)


class Migration(migrations.Migration):
    """The usual terms for what queues and targets ask of annotators."""

    dependencies = [("judgments", "0016_target_order")]

    operations = [
        migrations.RenameField("Queue", "left_out", "excluded"),
        migrations.RenameField("Queue", "overlap_most", "max_overlap"),
        migrations.RenameField("Queue", "qualify_items", "qualification_items"),
        migrations.RenameField("Queue", "qualify_at", "qualification_threshold"),
        migrations.RenameField("Target", "wanted", "required"),
        migrations.AlterField(
            "Queue",
            "assignment",
            models.CharField(
                max_length=12,
                choices=[
                    ("first_come", "first come"),
                    ("preassigned", "shared out among the annotators"),
                ],
                default="first_come",
            ),
        ),
        migrations.RunPython(forward, backward),
    ]
