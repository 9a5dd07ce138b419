"""Alerts name events and channels by the words of the rest of the site: succeeded, and email."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

RENAMED_EVENTS = (("finished", "succeeded"),)


def rename(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    rules, deliveries = apps.get_model("runs", "AlertRule"), apps.get_model("runs", "Delivery")
    rules.objects.filter(channel="mail").update(channel="email")
    for old, new in RENAMED_EVENTS:
        deliveries.objects.filter(event=old).update(event=new)
        for rule in rules.objects.filter(events__contains=[old]):
            rule.events = [new if event == old else event for event in rule.events]
            rule.save(update_fields=["events"])


class Migration(migrations.Migration):
    dependencies = [("runs", "0012_aliases")]

    operations = [
        migrations.AlterField(
            "AlertRule",
            "channel",
            models.CharField(
                choices=[("email", "email to your account's address"), ("webhook", "webhook")], max_length=7
            ),
        ),
        migrations.RunPython(rename, migrations.RunPython.noop),
    ]
