"""Searches over labelled games that people keep."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavedSearch(models.Model):
    """A search by its query string, under a name of its owner."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="label_searches")
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2000)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="label_search_name_once")]
