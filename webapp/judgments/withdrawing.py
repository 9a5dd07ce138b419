"""Withdrawal of consent from judging: the rows of such a game stay in the database, and nothing reads them.

Targets and judgments of such a game stay in the database, where `Target.objects` and `Judgment.objects` leave them out.
Suggestions are deleted, and so are reservations and what searches read of the game.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from training.dataset import episode_hash
from training.records import Episode
from webapp.arena.models import Match, MatchSeat
from webapp.judgments.games import of_match
from webapp.judgments.models import Assignment, LabelledGame, Suggestion, Target, source_of
from webapp.judgments.models.judged import source_of_match
from webapp.scenarios.models import DatasetVersion, StoredConversation, Withdrawal
from webapp.scenarios.withdrawing import withdraw


@transaction.atomic
def withdraw_match(*, match: Match) -> Withdrawal:
    """Withdraw a finished match from queues and datasets; idempotent."""
    _forget(Q(match=match))
    record = of_match(match)
    played = Episode(scenario=record.scenario, moves=record.moves)
    return withdraw(source=source_of(match), hashes=[episode_hash(played.to_dict())])


def refused_in_datasets() -> QuerySet[Match]:
    """Finished matches that a player refused, and of which a dataset has a copy that is not withdrawn."""
    refused = MatchSeat.objects.refusing().filter(match=OuterRef("pk"))
    copies = StoredConversation.objects.filter(source=OuterRef("name"), withdrawn_at=None)
    named = Match.objects.annotate(name=source_of_match("pk"))
    return named.filter(Exists(refused), Exists(copies), state=Match.State.FINISHED).order_by("pk")


@transaction.atomic
def forget_version(*, version: DatasetVersion) -> None:
    """Delete what is suggested about the withdrawn conversations of a version that was closed."""
    _forget(Q(conversation__scenario__version=version, conversation__withdrawn_at__isnull=False))


def _forget(games: Q) -> None:
    targets = Target.everything.filter(games)
    list(targets.select_for_update(of=("self",)).values_list("pk"))  # suggestions are stored under this lock
    Suggestion.objects.filter(target__in=targets).delete()
    Assignment.objects.filter(target__in=targets).delete()
    LabelledGame.objects.filter(games).delete()
