"""Matches at the table: seats, moves, each viewer's own rows, guest links and work that is due."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Match(models.Model):
    """One game at the table. Its state is `replay(scenario, moves)`; nothing else is stored of it."""

    class State(models.TextChoices):
        OPEN = "open", "waiting for players"
        RUNNING = "running"
        FINISHED = "finished"
        ABORTED = "aborted"

    class Visibility(models.TextChoices):
        PRIVATE = "private", "only who sits at it"
        OPEN = "open", "anyone signed in may watch"
        PUBLIC = "public", "listed with its replay"

    host = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="hosted_matches")
    game = models.CharField(max_length=40)
    scenario = models.JSONField(help_text="The Scenario played.")
    source = models.ForeignKey(
        "scenarios.StoredScenario", null=True, blank=True, on_delete=models.SET_NULL, related_name="matches"
    )
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    visibility = models.CharField(max_length=7, choices=Visibility, default=Visibility.PRIVATE)
    deadline_s = models.PositiveIntegerField(help_text="Seconds a person has for a move.")
    step = models.PositiveIntegerField(default=0, help_text="Completed steps of the game.")
    returns = models.JSONField(default=dict)
    metrics = models.JSONField(default=dict)
    aborted_why = models.CharField(max_length=400, blank=True)
    swapped_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="rematches")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)


class MatchSeat(models.Model):
    """Who sits where. `consent` None: not asked yet; False keeps the match out of every export."""

    class Kind(models.TextChoices):
        PERSON = "person"
        MODEL = "model"
        SCRIPTED = "scripted"
        OPEN = "open"

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="seats")
    seat = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=8, choices=Kind)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="match_seats"
    )
    guest_key_hash = models.CharField(max_length=64, blank=True, help_text="Of the guest's session key.")
    deployment = models.ForeignKey(
        "serving.Deployment", null=True, blank=True, on_delete=models.PROTECT, related_name="match_seats"
    )
    scripted = models.CharField(max_length=40, blank=True)
    consent = models.BooleanField(null=True, blank=True)
    consented_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "seat"], name="seat_once")]


class GuestLink(models.Model):
    """An invitation to one seat. The token is shown once and stored hashed; a POST claims it, once."""

    seat = models.OneToOneField(MatchSeat, on_delete=models.CASCADE, related_name="guest_link")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(null=True, blank=True)


class MatchMove(models.Model):
    """One move, in the order received. A resent or late move finds the stored one."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="moves")
    number = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    seat = models.PositiveSmallIntegerField()
    move = models.JSONField()
    private = models.TextField(blank=True, help_text="A model's reasoning; shown to nobody while the game runs.")
    attempts = models.JSONField(default=list, help_text="Refused replies before it: [{reply, error}].")
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["match", "step", "seat"], name="move_once"),
            models.UniqueConstraint(fields=["match", "number"], name="move_number_once"),
        ]


class ViewerRow(models.Model):
    """One log line that one viewer may see, under that viewer's own sequence number."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="rows")
    viewer = models.SmallIntegerField(help_text="A seat, or -1 spectator, -2 everything.")
    number = models.PositiveIntegerField()
    message = models.JSONField(help_text="A training.records.Message.")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "viewer", "number"], name="viewer_number_once")]


class DueSeat(models.Model):
    """A seat that must move: the work itself. The clock plays the default at `deadline`; `claimed_until` is a lease."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="due")
    seat = models.PositiveSmallIntegerField()
    step = models.PositiveIntegerField()
    deadline = models.DateTimeField(null=True, blank=True, help_text="Empty while its model is waking up.")
    claimed_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "seat"], name="due_once")]
