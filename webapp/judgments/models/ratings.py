"""What players thought of each other after a game."""

from __future__ import annotations

from django.db import models


class Guess(models.Model):
    """'Person or model?': what one player thought of another seat after the game, and whether it was sure.

    `sure` is None for guesses of earlier releases, which did not ask.
    """

    by = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guesses")
    about = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guessed")
    person = models.BooleanField()
    sure = models.BooleanField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["by", "about"], name="guess_once")]


class GameRating(models.Model):
    """How a player closed the rating of a game, once: with a vote, or by asking who it was without one."""

    by = models.OneToOneField("arena.MatchSeat", on_delete=models.CASCADE, related_name="game_rating")
    voted = models.BooleanField(help_text="False: the other seats were revealed without a vote, which is refused now.")
    created_at = models.DateTimeField(auto_now_add=True)
