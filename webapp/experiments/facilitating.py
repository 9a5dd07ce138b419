"""What a facilitator does while an experiment runs: notices, replacing. Each function is one transaction."""

from __future__ import annotations

from django.db import transaction

from training.errors import BadInput
from webapp.arena import hints
from webapp.experiments import states
from webapp.experiments.models import Participant
from webapp.experiments.states import Outcome, Stage

NUDGE = "Are you still there? The others are waiting for you."


@transaction.atomic
def nudge(*, participant: Participant, text: str) -> None:
    """Show a notice to one participant, on their page and at the table; an empty text takes it away."""
    participant = states.locked(participant)
    if participant.outcome not in {"", Outcome.LEFT}:
        raise BadInput("this participation has ended")
    participant.notice = text.strip()[:200]
    participant.save(update_fields=["notice"])
    seat = states.match_seat(participant)
    if seat is not None:
        seat.notice = participant.notice
        seat.save(update_fields=["notice"])
        hints.send(seat.match_id, [seat.seat])


@transaction.atomic
def replace(*, participant: Participant) -> None:
    """End a participation: a stand-in plays on at the table, and the place goes to the next newcomer.

    The whole group is replaced, as its game is no longer one of participants alone.
    """
    participant = states.locked(participant)
    if participant.outcome not in {"", Outcome.LEFT}:
        raise BadInput("this participation has ended")
    if participant.stage == Stage.PLAY:
        states.hand_over(participant)
    states.end(participant, Outcome.REMOVED, participant.experiment.code_removed)
