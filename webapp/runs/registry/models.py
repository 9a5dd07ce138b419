"""Aliases of checkpoints, and the record of their moves."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Alias(models.Model):
    """A name that stands for one checkpoint at a time. The checkpoint cannot be deleted while it has one.

    Names are unique on the whole site: `checkpoint:best` means the same wherever it is written, without a game or a
    base model beside it.
    """

    name = models.CharField(max_length=40, unique=True)
    checkpoint = models.ForeignKey("runs.Checkpoint", on_delete=models.PROTECT, related_name="aliases")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AliasMove(models.Model):
    """One move of an alias, by the names of the checkpoints; an empty one: it did not exist before, or after."""

    name = models.CharField(max_length=40)
    before = models.CharField(max_length=200, blank=True)
    after = models.CharField(max_length=200, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="alias_moves")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
