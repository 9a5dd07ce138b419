"""What belongs to annotators: their settings, and invitations to queues."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from webapp.judgments.models.queues import Queue


class AnnotatorSettings(models.Model):
    """How a person works on the page of a judgment: `keys` they chose by command, and when they want a break."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="annotator_settings")
    keys = models.JSONField(default=dict)
    break_minutes = models.PositiveSmallIntegerField(default=45, help_text="0: no reminder of a break.")


class Invitation(models.Model):
    """A link by which one person becomes an annotator of a queue; only the hash of its token is stored."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="invitations")
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
