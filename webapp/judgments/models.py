"""Rubrics, judgments by people and models, queues of what waits to be judged, and guesses after a game."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class Rubric(models.Model):
    """A named line of rubric versions."""

    name = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="rubrics"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class RubricVersion(models.Model):
    """One immutable state of a rubric: dimensions with scale, anchors and prompt."""

    rubric = models.ForeignKey(Rubric, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    dimensions = models.JSONField(
        help_text="[{name, title, low, high, question, anchors}], see training.rewards.rubrics."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rubric", "number"], name="rubric_number_once")]

    def __str__(self) -> str:
        return f"{self.rubric} v{self.number}"


class JudgeModel(models.Model):
    """A remote model that may judge, with the sampling it is asked under."""

    name = models.CharField(max_length=120, unique=True)
    remote = models.ForeignKey("serving.RemoteModel", on_delete=models.PROTECT, related_name="judges")
    temperature = models.FloatField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Queue(models.Model):
    """A set of targets to be judged under one rubric version, by people or by one judge model."""

    name = models.CharField(max_length=120)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="queues")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="queues")
    judge = models.ForeignKey(JudgeModel, null=True, blank=True, on_delete=models.PROTECT, related_name="queues")
    annotators = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="annotation_queues")
    created_at = models.DateTimeField(auto_now_add=True)


class Target(models.Model):
    """One seat of one match or of one episode of a run, in a queue; `state` tells how far a model's judging is."""

    class State(models.TextChoices):
        PENDING = "pending"
        SCORED = "scored"
        UNSCORED = "unscored", "could not be scored"

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="targets")
    match = models.ForeignKey("arena.Match", null=True, blank=True, on_delete=models.CASCADE, related_name="targets")
    episode = models.ForeignKey(
        "runs.PlayedEpisode", null=True, blank=True, on_delete=models.CASCADE, related_name="targets"
    )
    seat = models.PositiveSmallIntegerField()
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    claimed_until = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "position"], name="target_position_once"),
            models.CheckConstraint(
                condition=Q(match__isnull=False, episode__isnull=True) | Q(match__isnull=True, episode__isnull=False),
                name="target_is_match_or_episode",
            ),
        ]


class Judgment(models.Model):
    """One author's values for one seat of a game under one rubric version. `values` null = could not score."""

    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="judgments")
    queue = models.ForeignKey(Queue, null=True, blank=True, on_delete=models.CASCADE, related_name="judgments")
    match = models.ForeignKey("arena.Match", null=True, blank=True, on_delete=models.CASCADE, related_name="judgments")
    episode = models.ForeignKey(
        "runs.PlayedEpisode", null=True, blank=True, on_delete=models.CASCADE, related_name="judgments"
    )
    seat = models.PositiveSmallIntegerField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="judgments"
    )
    author_seat = models.ForeignKey(
        "arena.MatchSeat",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="judgments",
        help_text="The seat from which a player or guest rated.",
    )
    judge = models.ForeignKey(JudgeModel, null=True, blank=True, on_delete=models.PROTECT, related_name="judgments")
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    values = models.JSONField(null=True, blank=True)
    reason = models.TextField(blank=True)
    cost = models.JSONField(default=dict, help_text="Tokens of the judge's call.")
    created_at = models.DateTimeField(auto_now_add=True)


class Guess(models.Model):
    """'Person or model?': what one player thought of another seat after the game."""

    by = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guesses")
    about = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guessed")
    person = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["by", "about"], name="guess_once")]
