"""Writes of ratings after a game: each function is one transaction, and changes nothing where it raises `BadInput`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play.pace import knows_seats
from webapp.judgments.annotating.services import labels_of, store_labels
from webapp.judgments.models import (
    CodebookVersion,
    GameRating,
    Guess,
    Judgment,
    role_at,
)


@dataclass(frozen=True)
class Answer:
    """A guess whether a person sat at a seat, and whether the player is sure."""

    person: bool
    sure: bool = True


@transaction.atomic
def rate(
    *,
    by: MatchSeat,
    version: CodebookVersion | None,
    values: Mapping[int, Mapping[str, Any]],
    guesses: Mapping[int, Answer],
) -> None:
    """Store a player's vote after the game, once: what they took every other seat for, and any values they gave.

    A host who chose the players may leave the guesses out. `values` of a seat may leave label types out; `version` is
    the codebook that they belong to.
    """
    Match.objects.select_for_update().get(pk=by.match_id)  # consent is withdrawn before or after, not meanwhile
    others = {seat.seat: seat for seat in by.match.seats.exclude(pk=by.pk)}
    left_out = not guesses and knows_seats(by.match, by.user_id)
    if (set(guesses) != set(others) and not left_out) or not set(values) <= set(others):
        raise BadInput("guess for every other seat whether it was a person or a model", "guess")
    _close_rating(by, voted=True)
    for number, seat_values in values.items():
        if version is None:
            continue
        asked = _asked_of(by, version, number)
        if not (labels := labels_of(asked, seat_values, number)):
            continue
        asked.check(labels, whole=False)
        judgment = Judgment.objects.create(
            codebook_version=version, match=by.match, seat=number, author=by.user, author_seat=by,
            updated_at=timezone.now(),
        )  # fmt: skip
        store_labels(judgment, labels)
    Guess.objects.bulk_create(
        Guess(by=by, about=others[number], person=answer.person, sure=answer.sure) for number, answer in guesses.items()
    )


def _asked_of(by: MatchSeat, version: CodebookVersion, seat: int) -> CodebookRecord:
    return version.record().of(role_at(by.match, seat))


@transaction.atomic
def reveal_unrated(*, by: MatchSeat) -> None:
    """Reveal the other players to a player without a vote; a later vote is refused."""
    _close_rating(by, voted=False)


def is_rated(by: MatchSeat) -> bool:
    """Whether this player has voted after the game, or seen without a vote who the others were."""
    kinds = GameRating.objects.filter(by=by), Guess.objects.filter(by=by), Judgment.objects.filter(author_seat=by)
    return any(rows.exists() for rows in kinds)


def check_rateable(by: MatchSeat) -> None:
    """Raise `BadInput` if the game is not over, or this player's rating of it is closed."""
    if by.match.state != Match.State.FINISHED:
        raise BadInput("the game is not over yet")
    if GameRating.objects.filter(by=by, voted=False).exists():
        raise BadInput("you have seen who it was without rating, so a guess does not count any more")
    if is_rated(by):
        raise BadInput("you have rated this game already")


def _close_rating(by: MatchSeat, *, voted: bool) -> None:
    """Close a player's rating of a game; raise `BadInput` if that was done before, or the game is not over."""
    check_rateable(by)
    try:
        with transaction.atomic():
            GameRating.objects.create(by=by, voted=voted)
    except IntegrityError:  # somebody closed it in the same moment
        check_rateable(by)
        raise
