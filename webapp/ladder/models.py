"""The stored ladder of a game: one fit, with one row per player.

All of it is derived: `services.refit` recomputes it from the log of matches, and the same log gives the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import NullIf

from webapp.arena import opponents
from webapp.arena.models import MatchSeat
from webapp.serving.models import Deployment

if TYPE_CHECKING:
    from webapp.accounts.models import User


class Fit(models.Model):
    """The last fit of a game. `log_digest` is of method, matches and results; `seen` is of the matches' numbers."""

    game = models.CharField(max_length=40, unique=True)
    log_digest = models.CharField(max_length=64, blank=True)
    seen = models.CharField(max_length=64, blank=True)
    matches = models.PositiveIntegerField(default=0)
    seats = models.JSONField(default=dict, help_text="What each seat, by its number, is worth in points: an interval.")
    roles = models.JSONField(default=dict, help_text="The same for each role.")
    fitted_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"ladder of {self.game}"


class StandingQuerySet(models.QuerySet["Standing"]):
    """Reads of ladder rows."""

    def visible_to(self, user: User) -> StandingQuerySet:
        """People, scripted players, and the models that this user may play against."""
        if user.is_guest:
            return self.none()
        visible = Deployment.objects.visible_to(user)
        spoken = Q(speaker=None) | Q(speaker__in=visible)
        return self.filter(Q(deployment=None) | Q(deployment__in=visible) & spoken)

    def of_people(self, text: str) -> StandingQuerySet:
        """Those of people whose name contains the text."""
        return self.filter(kind=Standing.Kind.PERSON, user__username__icontains=text)

    def matching(self, *, kind: str = "") -> StandingQuerySet:
        """Those of one kind; empty filters nothing."""
        return self.filter(kind=kind) if kind else self

    def named(self) -> StandingQuerySet:
        """Load what the names need, and annotate `share`: points per game (win 1, draw 0.5)."""
        rows = self.select_related("user", *MatchSeat.NAMES)
        return rows.annotate(share=F("won") / NullIf("games", 0, output_field=models.FloatField()))


class Standing(models.Model):
    """One player's place in one fit. Empty `rating`: `why` says the reason (`training.evaluate.ratings.Rating`).

    `games` are those with results of two players and `won` the points of them, a draw being half; `played` are all
    matches in the log. The counts of moves and of games with at least one such move tell how often it did not choose
    for itself.
    """

    class Kind(models.TextChoices):
        PERSON = "person", "people"
        MODEL = "model", "models"
        SCRIPTED = "scripted", "scripted players"

    fit = models.ForeignKey(Fit, on_delete=models.CASCADE, related_name="standings")
    who = models.CharField(max_length=80, help_text="Kind and number or name: its key in the log.")
    kind = models.CharField(max_length=8, choices=Kind)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="standings")
    deployment = models.ForeignKey("serving.Deployment", null=True, on_delete=models.CASCADE, related_name="standings")
    speaker = models.ForeignKey(
        "serving.Deployment",
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The model that speaks, where the deployment advises it: another player than the deployment alone.",
    )
    rank = models.PositiveIntegerField(null=True)
    rating = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    why = models.CharField(max_length=8, blank=True)
    games = models.PositiveIntegerField(default=0)
    won = models.FloatField(default=0.0)
    roles = models.JSONField(default=dict, help_text="Role to [games, points].")
    against = models.JSONField(default=dict, help_text="Opponent's key to [games, points].")
    played = models.PositiveIntegerField(default=0)
    moves = models.PositiveIntegerField(default=0)
    default_moves = models.PositiveIntegerField(default=0)
    timeout_moves = models.PositiveIntegerField(default=0)
    default_games = models.PositiveIntegerField(default=0)
    timeout_games = models.PositiveIntegerField(default=0)
    forfeit_games = models.PositiveIntegerField(default=0)

    objects = StandingQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["fit", "who"], name="standing_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The player's display name."""
        if self.user is not None:
            return self.user.shown_name
        if self.deployment is None:
            return self.who.partition(":")[2]
        return opponents.with_voice(str(self.deployment), str(self.speaker or ""), self.who.partition("+")[2])

    @property
    def half(self) -> float | None:
        """Half the width of the interval, in points."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2
