"""Who has left: participants whose page has been silent for too long, and players for whom a stand-in moves."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from webapp.arena.models import MatchSeat
from webapp.arena.play import services
from webapp.experiments import states
from webapp.experiments.models import Participant
from webapp.experiments.states import Outcome, Stage

ABSENT = {
    Stage.BEFORE: timedelta(minutes=15),
    Stage.WAIT: timedelta(seconds=60),
    Stage.AFTER: timedelta(minutes=60),
    Stage.DEBRIEFING: timedelta(minutes=60),
}
"""How long a page may be silent. At the table the arena decides: a stand-in takes over from who is away."""


def absent(*, limit: int) -> list[int]:
    """Participants on their way who have left."""
    now = services.database_now()
    silent = Q()
    for stage, longest in ABSENT.items():
        silent |= Q(stage=stage, seen_at__lt=now - longest)
    replaced = MatchSeat.objects.filter(match=OuterRef("group__match"), user=OuterRef("user"), stand_in=True)
    away = Q(stage=Stage.PLAY) & Exists(replaced)
    return list(
        Participant.objects.under_way().filter(silent | away).order_by("pk").values_list("pk", flat=True)[:limit]
    )


@transaction.atomic
def leave(*, participant_id: int) -> Participant | None:
    """Record that a participant has left; None if they are back. Who debriefing alone is missing for is complete."""
    participant = states.locked(Participant.objects.get(pk=participant_id))
    if participant.outcome or not _is_absent(participant):
        return None
    if participant.stage == Stage.DEBRIEFING:
        states.end(participant, Outcome.COMPLETED, participant.experiment.code_completed)
    else:
        states.end(participant, Outcome.LEFT)
    return participant


def _is_absent(participant: Participant) -> bool:
    if participant.stage == Stage.PLAY:
        seat = states.match_seat(participant)
        return seat is not None and seat.stand_in
    seen = participant.seen_at
    return seen is not None and services.database_now() - seen > ABSENT[Stage(participant.stage)]
