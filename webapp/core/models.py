"""The processes of ours that must be alive, clocks and workers, and what people have used of their hourly quotas."""

from typing import Any

from django.conf import settings
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


class QuotaUse(models.Model):
    """One use of an hourly quota whose results can be deleted: deleting them gives nothing back."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    quota = models.CharField(max_length=40)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["user", "quota", "at"])]

    def __str__(self) -> str:
        return self.quota


def beat(kind: Heartbeat.Kind, name: str, **detail: Any) -> None:
    """Write the heartbeat of this process; `detail` is what health reports show about it."""
    changed = Heartbeat.objects.filter(name=name).update(kind=kind, beaten_at=Now(), detail=detail)
    if not changed:
        Heartbeat.objects.bulk_create([Heartbeat(kind=kind, name=name, detail=detail)], ignore_conflicts=True)
