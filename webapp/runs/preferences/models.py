"""Choices of a person, one row for each kind."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Preference(models.Model):
    """One kind of choices of a person, such as `charts`; without a row the defaults hold."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="run_preferences")
    name = models.CharField(max_length=20)
    value = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="run_preference_once")]

    def __str__(self) -> str:
        return self.name
