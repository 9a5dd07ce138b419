"""Rules of people, and the deliveries that they caused. A delivery's row is the work: it is sent at least once."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from webapp.runs.alerts.channels import CHANNELS

EVENTS = {
    "succeeded": "a run has succeeded",
    "failed": "a run has failed",
    "stopped": "a run was stopped",
    "stale": "a running run shows no progress for five minutes",
    "watchdog": "the watchdog of a run reports something",
}
"""What an alert can be about. The first three are the states in which a run ends."""


class AlertRule(models.Model):
    """What a person wants to hear about, and where: of one run, or (none) of all their own."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alert_rules")
    run = models.ForeignKey("runs.Run", null=True, blank=True, on_delete=models.CASCADE, related_name="alert_rules")
    events = models.JSONField()
    channel = models.CharField(max_length=20, help_text="A name of `webapp.runs.alerts.channels.CHANNELS`.")
    address = models.CharField(max_length=500, blank=True, help_text="Of a webhook.")
    secret = models.CharField(max_length=80, blank=True, help_text="Key of a webhook's signatures.")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.channel} {self.address}".strip()

    @property
    def destination(self) -> str:
        """Where its alerts go, for its owner; the bare name of a channel that the site no longer has."""
        return CHANNELS[self.channel].destination(self) if self.channel in CHANNELS else self.channel

    @property
    def words(self) -> list[str]:
        """What it is about, for people."""
        return [EVENTS.get(event, event) for event in self.events]


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Reads of deliveries."""

    def due(self) -> DeliveryQuerySet:
        """Those that wait and whose time has come, by the database's clock."""
        return self.filter(state="waiting", next_at__lte=Now())


class Delivery(models.Model):
    """One alert of a rule; `key` is unique for what happened, so that nothing is reported twice."""

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="deliveries")
    key = models.CharField(max_length=120)
    event = models.CharField(max_length=20)
    body = models.JSONField()
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    next_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "key"], name="alert_once")]
        indexes = [models.Index(fields=["state", "next_at"])]

    @property
    def words(self) -> str:
        """What has happened, for people."""
        return EVENTS.get(self.event, "a test")
