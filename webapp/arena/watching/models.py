"""The chat of spectators: messages, reports, muted people, and former players, who may not read it.

No player of the match reads it, neither during the game nor afterwards: see `webapp.arena.access`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    from webapp.accounts.models import User

LONGEST = 300
"""Characters of one message."""


class ChatMessage(models.Model):
    """One message in the chat of a match. Deleted messages keep their rows, so that moderation can be audited."""

    match = models.ForeignKey("arena.Match", on_delete=models.CASCADE, related_name="chat_messages")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chat_messages")
    text = models.CharField(max_length=LONGEST)
    step = models.PositiveIntegerField(help_text="Completed steps of the game when it was written.")
    created_at = models.DateTimeField()
    deleted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["match", "id"], name="chat_message_match"),
            models.Index(fields=["author", "-created_at"], name="chat_message_author"),
        ]

    def __str__(self) -> str:
        return f"message {self.pk}"

    @property
    def reports_open(self) -> int:
        """The number of its reports that no moderator has dismissed."""
        return sum(report.dismissed_at is None for report in self.reports.all())

    def reported_by(self, reader: User) -> bool:
        """Whether this reader has reported it."""
        return any(report.reporter_id == reader.pk for report in self.reports.all())


class ChatReport(models.Model):
    """A reader's report of a message, until a moderator deletes the message or dismisses its reports."""

    message = models.ForeignKey(ChatMessage, on_delete=models.CASCADE, related_name="reports")
    reporter = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    dismissed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    dismissed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["message", "reporter"], name="reported_once")]


class ChatMute(models.Model):
    """A person who may no longer write in the chat of a match."""

    match = models.ForeignKey("arena.Match", on_delete=models.CASCADE, related_name="chat_mutes")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "user"], name="muted_once")]


class FormerPlayer(models.Model):
    """A person who was sent away from a running game: no seat names them, but they still count as its player."""

    match = models.ForeignKey("arena.Match", on_delete=models.CASCADE, related_name="former_players")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "user"], name="former_player_once")]
