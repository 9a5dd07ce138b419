"""What can be judged: a finished match, an episode of a run, or an imported conversation."""

from __future__ import annotations

import functools
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Exists, ExpressionWrapper, F, Func, OuterRef, Q, TextField, Value
from django.db.models.functions import Coalesce

from webapp.arena.models import Match, MatchSeat
from webapp.runs.models import PlayedEpisode
from webapp.scenarios.models import StoredConversation

M = TypeVar("M", bound=models.Model)
JudgedGame = Match | PlayedEpisode | StoredConversation
"""What can be judged: a finished match, an episode of a run, or an imported conversation."""
SITE_SOURCE = r"^(match:[0-9]+|run:[0-9]+/[0-9]+/[0-9]+)$"
"""What `source_of` returns."""


def source_of(game: Match | PlayedEpisode) -> str:
    """Return the name of a game of this site in datasets: the `source` of the conversations that copy it."""
    if isinstance(game, Match):
        return f"match:{game.pk}"
    return f"run:{game.run_id}/{game.step}/{game.number}"


class _Joined(Func):
    """Texts and numbers as one text; NULL if one of them is, which `Concat` takes for an empty text."""

    template, arg_joiner, output_field = "(%(expressions)s)", " || ", TextField()


def source_of_match(column: str) -> _Joined:
    """Return `source_of` the match whose number is in this column, in SQL."""
    return _Joined(Value("match:"), F(column))


def source_in_sql(row: type[F]) -> Coalesce:
    """Return `source_of` the game of a target or judgment in SQL; of a conversation, the source that it came with."""
    match = _Joined(Value("match:"), row("match"))
    parts = row("episode__run"), Value("/"), row("episode__step"), Value("/"), row("episode__number")
    return Coalesce(match, _Joined(Value("run:"), *parts), row("conversation__source"), output_field=TextField())


@functools.cache
def is_consented(of: str = "") -> tuple[Q, Q]:
    """Return the conditions that no player of a row's match, nor the person behind its conversation, withdrew consent.

    `of`: the relation whose columns name the game, with two underscores at the end. Nearly every read has the
    conditions, which are the same for everybody: they are built once.
    """
    refused = MatchSeat.objects.refusing().filter(match=OuterRef(f"{of}match"))
    withdrawn = StoredConversation.objects.withdrawn().filter(pk=OuterRef(f"{of}conversation"))
    return ~Q(Exists(refused)), ~Q(Exists(withdrawn))


class ConsentedQuerySet(models.QuerySet[M]):
    """Rows with the columns `match` and `conversation`."""

    def consented(self) -> Self:
        """Without those about a game to whose use a player, or the person behind a conversation, withdrew consent."""
        return self.filter(*is_consented())

    def with_consent(self) -> Self:
        """With whether each row is among those, as `kept`."""
        return self.annotate(kept=ExpressionWrapper(Q(*is_consented()), models.BooleanField()))

    def withdrawn(self) -> Self:
        """The others."""
        refused, withdrawn = is_consented()
        return self.filter(~refused | ~withdrawn)


def role_at(game: JudgedGame, seat: int) -> str:
    """Return the role of a seat in a finished game; empty in a game without roles."""
    if isinstance(game, Match):
        roles = game.roles
    elif isinstance(game, PlayedEpisode):
        roles = game.summary.get("roles")
    else:
        roles = game.data.get("roles")
    return str(roles[seat]) if roles and seat < len(roles) else ""


def of_same_seat(rows: models.QuerySet[Any]) -> Q:
    """The condition that one of these targets or judgments is about the same seat of the same game as an outer row, or
    that one of both is about the whole game.

    Two queues over one game have two targets of a seat. A game may be judged as the match or the episode that was
    played, and as each of the conversations that copy it: those have its `source_of`, or the same scenario and moves.
    """
    copies = rows.exclude(conversation__episode_sha256=None).filter(
        conversation__episode_sha256=OuterRef("conversation__episode_sha256")
    )
    named = rows.alias(source=source_in_sql(F)).filter(source__regex=SITE_SOURCE, source=source_in_sql(OuterRef))
    # every EXISTS compares by equality alone, so that the database hashes its rows once
    return _of_seat(copies) | _of_seat(named)


def _of_seat(rows: models.QuerySet[Any]) -> Q:
    """The condition that one of these rows has the seat of an outer row, or that one of both has none."""
    return (
        Q(Exists(rows.filter(seat=OuterRef("seat"))))
        | Q(Exists(rows.filter(seat=None)))
        | (Q(seat=None) & Q(Exists(rows)))
    )
