from django.db import migrations, models

WORDS = (("finished", "succeeded"),)


def rename(apps, schema_editor):
    rules, deliveries = apps.get_model("runs", "AlertRule"), apps.get_model("runs", "Delivery")
    rules.objects.filter(channel="mail").update(channel="email")
    for old, new in WORDS:
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
