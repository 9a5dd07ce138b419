from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def forget(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Fits are made anew from the log of matches; those before did not say which seat was which."""
    apps.get_model("ladder", "Standing").objects.all().delete()
    apps.get_model("ladder", "Fit").objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('ladder', '0001_initial'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='standing',
            name='forfeit_moves',
        ),
        migrations.AlterField(
            model_name='fit',
            name='seats',
            field=models.JSONField(default=dict, help_text='What each seat, by its number, is worth in points: an interval.'),
        ),
        migrations.RunPython(forget, migrations.RunPython.noop),
    ]
