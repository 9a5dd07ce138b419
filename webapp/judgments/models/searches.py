"""What searches read of games that were judged, and the searches that people keep."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import Q


class LabelledGame(models.Model):
    """What searches and curves read of a game that somebody judged, without opening its file: it never changes.

    `movers` is the seat of each move; `roles`, `won` and `survived` are by seat, and empty where the game has none.
    """

    match = models.OneToOneField(
        "arena.Match", null=True, blank=True, on_delete=models.CASCADE, related_name="labelled_game"
    )
    episode = models.OneToOneField(
        "runs.PlayedEpisode", null=True, blank=True, on_delete=models.CASCADE, related_name="labelled_game"
    )
    conversation = models.OneToOneField(
        "scenarios.StoredConversation", null=True, blank=True, on_delete=models.CASCADE, related_name="labelled_game"
    )
    game = models.CharField(max_length=60)
    roles = models.JSONField(default=list)
    won = models.JSONField(default=list)
    survived = models.JSONField(default=list)
    movers = models.JSONField(default=list)
    text = models.TextField(blank=True, help_text="The texts of its moves, a line each.")
    words = models.GeneratedField(
        expression=SearchVector("text", config="simple"), output_field=SearchVectorField(), db_persist=True
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(match__isnull=False, episode__isnull=True, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=False, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=True, conversation__isnull=False),
                name="labelled_game_is_one_game",
            ),
        ]
        indexes = [GinIndex(fields=["words"], name="labelled_game_words"), models.Index(fields=["game"])]


class SavedSearch(models.Model):
    """A search by its query string, under a name of its owner."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="label_searches")
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2000)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="label_search_name_once")]
