"""Runs that a person has pinned to the top of the list."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Pin(models.Model):
    """A run at the top of one person's list."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="pinned_runs")
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="pins")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "run"], name="run_pinned_once")]
