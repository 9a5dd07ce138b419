"""Deletion of an account: what is personal goes, and games, judgments and work of others stay whole.

The row of the person stays under a random name. Seats, judgments and what the person owns keep pointing at it, so that
replays, ratings and numbers of annotators do not change; it says nothing of who the person was.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Model, Q

from training.errors import BadInput
from webapp.accounts import services as accounts
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import hosting
from webapp.arena.setup import waiting_room
from webapp.arena.watching.models import ChatMessage, ChatMute, ChatReport, FormerPlayer
from webapp.core.models import QuotaUse
from webapp.experiments.models import Experiment, Participant
from webapp.home.models import Tour
from webapp.judgments.models import (
    AnnotatorSettings,
    Assignment,
    Invitation,
    Judgment,
    Qualification,
    Queue,
    SavedSearch,
)
from webapp.judgments.queues import sharing
from webapp.runs.alerts.models import AlertRule
from webapp.runs.organising.models import Pin
from webapp.runs.preferences.models import Preference
from webapp.scenarios.imports import drop_import
from webapp.scenarios.models import Dataset, Import

PERSONAL: tuple[tuple[type[Model], tuple[str, ...]], ...] = (
    (AlertRule, ("user",)), (Pin, ("user",)), (Preference, ("user",)), (Tour, ("user",)), (QuotaUse, ("user",)),
    (ChatMessage, ("author",)), (ChatReport, ("reporter",)), (ChatMute, ("user",)), (FormerPlayer, ("user",)),
    (AnnotatorSettings, ("user",)), (SavedSearch, ("owner",)), (Assignment, ("annotator",)),
    (Qualification, ("annotator",)), (Invitation, ("created_by", "accepted_by")), (Import, ("owner",)),
)  # fmt: skip
"""Rows that are deleted with an account, and the columns that name the person."""


@dataclass(frozen=True)
class Extent:
    """What an account has: `games` in which it sat, of which `running` ones are left, `judgments`, and `owned` work."""

    games: int
    running: int
    judgments: int
    owned: int


def extent(user: User) -> Extent:
    """Return what the deletion of an account concerns, for the page that says so first."""
    seats = MatchSeat.objects.filter(user=user)
    return Extent(
        games=seats.count(),
        running=seats.filter(match__state__in=(Match.State.OPEN, Match.State.RUNNING)).count(),
        judgments=Judgment.everything.filter(author=user).count(),
        owned=sum(model._default_manager.filter(owner=user).count() for model in (Dataset, Queue, Experiment))
        + user.runs.count(),
    )


@transaction.atomic
def erase(*, user: User, withdraw: bool = False) -> None:
    """Delete an account; deleted twice, nothing changes. `withdraw`: refuse the use of all the person's games first.

    Raises `BadInput` for the last administrator, and while the person takes part in an experiment.
    """
    locked = User.objects.select_for_update().get(pk=user.pk)
    if locked.deleted_at is not None:
        return
    if Participant.objects.under_way().filter(user=locked).exists():
        raise BadInput("you take part in an experiment: finish it or withdraw from it first", "experiment")
    _leave_tables(locked)
    if withdraw:
        for seat in MatchSeat.objects.filter(user=locked, consent=True).select_related("match").order_by("match"):
            waiting_room.answer_consent(match=seat.match, user=locked, agreed=False)
    _leave_queues(locked)
    for upload in Import.objects.filter(owner=locked):
        drop_import(pk=upload.pk)
    for model, columns in PERSONAL:
        named = Q(*((column, locked) for column in columns), _connector=Q.OR)
        model._default_manager.filter(named).delete()
    Participant.objects.filter(user=locked).update(external_id="", study_id="", session_id="")
    accounts.anonymise(user=locked)


def _leave_tables(user: User) -> None:
    """Close the person's own tables that have not begun, leave those of others, and let stand-ins finish games."""
    for match in Match.objects.filter(host=user, state=Match.State.OPEN).order_by("pk"):
        waiting_room.close(match=match)
    for seat in MatchSeat.objects.filter(user=user).select_related("match").order_by("match"):
        if seat.match.state == Match.State.OPEN:
            waiting_room.leave(match=seat.match, user=user)
        elif seat.match.state == Match.State.RUNNING:
            hosting.replace(match=seat.match, number=seat.seat)


def _leave_queues(user: User) -> None:
    """Give what the person was to judge to the other annotators, where there are any."""
    for queue in Queue.objects.filter(annotators=user).order_by("pk"):
        if queue.state != Queue.State.CLOSED and queue.annotators.count() > 1:
            sharing.remove_annotator(queue=queue, annotator=user)
        else:
            queue.annotators.remove(user)
