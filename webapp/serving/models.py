"""Deployments: models that can answer at a table."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class RemoteModel(models.Model):
    """A model behind an OpenAI-compatible address of the allow-list. Holds the *name* of a secret, never its value."""

    name = models.CharField(max_length=120, unique=True)
    address = models.URLField()
    model = models.CharField(max_length=200)
    secret_name = models.CharField(max_length=120, blank=True)
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Deployment(models.Model):
    """One model that can be asked: a served checkpoint (base models included), or a remote model."""

    class State(models.TextChoices):
        COLD = "cold"
        STARTING = "starting"
        READY = "ready"
        STOPPING = "stopping"
        FAILED = "failed"

    checkpoint = models.OneToOneField(
        "runs.Checkpoint", null=True, blank=True, on_delete=models.CASCADE, related_name="deployment"
    )
    remote = models.OneToOneField(
        RemoteModel, null=True, blank=True, on_delete=models.CASCADE, related_name="deployment"
    )
    state = models.CharField(max_length=8, choices=State, default=State.COLD)
    run = models.ForeignKey("runs.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="deployments")
    address = models.URLField(blank=True)
    key = models.CharField(
        max_length=64, blank=True, help_text="Random key of the local server; changes at every start."
    )
    error = models.TextField(blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    wanted_at = models.DateTimeField(null=True, blank=True, help_text="Somebody is waiting for it since then.")
    ready_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(checkpoint__isnull=False, remote__isnull=True)
                | Q(checkpoint__isnull=True, remote__isnull=False),
                name="deployment_has_one_source",
            )
        ]
