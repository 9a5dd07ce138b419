"""A sweep and its trials. A trial is a run with the values that it was made with."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.accounts.ownership import OwnedQuerySet


class Sweep(models.Model):
    """Runs over values of configuration fields. Its runs are the group of its name."""

    class Search(models.TextChoices):
        GRID = "grid", "grid: every combination of the values"
        RANDOM = "random", "random: values drawn for each run"

    class Goal(models.TextChoices):
        MAXIMUM = "max", "highest"
        MINIMUM = "min", "lowest"

    name = models.CharField(max_length=70)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sweeps")
    search = models.CharField(max_length=6, choices=Search)
    fields = models.JSONField(help_text="Path and text of the values of each field.")
    seed = models.PositiveBigIntegerField(default=0, help_text="Of the values that are drawn.")
    metric = models.CharField(max_length=200, default="reward")
    goal = models.CharField(max_length=3, choices=Goal, default=Goal.MAXIMUM)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet["Sweep"].as_manager()

    def __str__(self) -> str:
        return self.name


class Trial(models.Model):
    """One run of a sweep."""

    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="trials")
    run = models.OneToOneField("runs.Run", on_delete=models.CASCADE, related_name="trial")
    number = models.PositiveIntegerField()
    values = models.JSONField(help_text="Value of each field, by its path.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sweep", "number"], name="trial_number_once")]
        ordering = ["number"]
