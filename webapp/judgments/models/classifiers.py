"""Classifiers that were trained on labels of this site."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.judgments.models.codebooks import CodebookVersion


class Classifier(models.Model):
    """A head on a frozen model that labels turns under a codebook version: see `training.labels.classifier`.

    A worker trains it in a process of its own, in `folder` below the site's files. `trained_on` names its labels
    (queues or datasets with their hashes), `accuracy` is what was measured for each label on held-out dialogues.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        TRAINING = "training"
        READY = "ready"
        FAILED = "failed"

    name = models.SlugField(max_length=80, unique=True)
    codebook_version = models.ForeignKey(CodebookVersion, on_delete=models.PROTECT, related_name="classifiers")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="classifiers")
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    why = models.TextField(blank=True, help_text="Why it failed.")
    folder = models.CharField(max_length=300, blank=True)
    trained_on = models.JSONField(default=dict)
    accuracy = models.JSONField(default=dict)
    claimed_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
