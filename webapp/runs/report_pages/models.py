"""Reports, and the numbers pinned in them."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.accounts.ownership import OwnedQuerySet


class Report(models.Model):
    """A page of Markdown."""

    title = models.CharField(max_length=120)
    text = models.TextField(blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="run_reports")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = OwnedQuerySet["Report"].as_manager()

    def __str__(self) -> str:
        return self.title


class PinnedNumber(models.Model):
    """One number of a report as it was when it was pinned, with its provenance; it does not change with its runs."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="pinned")
    reference = models.CharField(max_length=300, help_text="As the text names it: run:12,13 reward.")
    provenance = models.JSONField(
        help_text="Value, interval, n, and its runs with step, code, configuration's hash and seed."
    )
    pinned_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["report", "reference"], name="pinned_once")]
