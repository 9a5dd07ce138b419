"""One row for every process of ours that must be alive: clocks and workers."""

from typing import Any

from django.db import models
from django.db.models.functions import Now


class Heartbeat(models.Model):
    """The last heartbeat of a clock or worker, by the database's clock."""

    class Kind(models.TextChoices):
        CLOCK = "clock"
        WORKER = "worker"

    kind = models.CharField(max_length=8, choices=Kind.choices)
    name = models.CharField(max_length=200, unique=True)
    beaten_at = models.DateTimeField(db_default=Now())
    detail = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def beat(kind: Heartbeat.Kind, name: str, **detail: Any) -> None:
    """Write the heartbeat of this process; `detail` is what health reports show about it."""
    changed = Heartbeat.objects.filter(name=name).update(kind=kind, beaten_at=Now(), detail=detail)
    if not changed:
        Heartbeat.objects.bulk_create([Heartbeat(kind=kind, name=name, detail=detail)], ignore_conflicts=True)
