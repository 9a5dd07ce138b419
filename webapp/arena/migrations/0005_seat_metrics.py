from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from training.reading import split_seat_metrics

ROWS = 500


def split(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Move the numbers of a seat, named `won_0` until now, to the seat."""
    model = apps.get_model("arena", "Match")
    changed = []
    for match in model.objects.exclude(metrics={}).only("pk", "metrics", "scenario").iterator(chunk_size=ROWS):
        metrics, by_seat = split_seat_metrics(match.metrics, len(match.scenario["seats"]))
        match.metrics, match.seat_metrics = metrics, {str(seat): values for seat, values in by_seat.items()}
        changed.append(match)
        if len(changed) == ROWS:
            model.objects.bulk_update(changed, ["metrics", "seat_metrics"])
            changed.clear()
    model.objects.bulk_update(changed, ["metrics", "seat_metrics"])


def join(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Name the numbers of a seat `won_0` again, among those of the game."""
    model = apps.get_model("arena", "Match")
    for match in model.objects.exclude(seat_metrics={}).only("pk", "metrics", "seat_metrics").iterator(chunk_size=ROWS):
        for seat, values in match.seat_metrics.items():
            match.metrics |= {f"{name}_{seat}": value for name, value in values.items()}
        match.save(update_fields=["metrics"])


class Migration(migrations.Migration):

    dependencies = [
        ('arena', '0004_rules'),
    ]

    operations = [
        migrations.AddField(
            model_name='match',
            name='seat_metrics',
            field=models.JSONField(default=dict),
        ),
        migrations.RunPython(split, join),
    ]
