"""The waiting room: groups are formed of participants who are connected and look at their page, and of nobody else.

Participants wait at most the experiment's longest wait, also for a model that is starting; then the arm's fallback
takes the empty seats, or they leave with the code for waiting. Each function but `end_waits` is one transaction.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from webapp.arena.play import services
from webapp.experiments import seating, states
from webapp.experiments.models import Arm, Experiment, Group, ParticipantQuerySet
from webapp.experiments.states import Outcome, Stage

HEARTBEAT_S = 3
"""How often a page says that it is there."""
CONNECTED = timedelta(seconds=3 * HEARTBEAT_S)
"""Who was not heard of for this long is not connected."""


def waiting(arm: Arm) -> ParticipantQuerySet:
    """The participants in the waiting room of an arm, in the order in which they came."""
    return arm.participants.filter(stage=Stage.WAIT, outcome="").order_by("waiting_since", "pk")


def present(arm: Arm) -> ParticipantQuerySet:
    """Those of them who are connected and visible."""
    since = services.database_now() - CONNECTED
    return waiting(arm).filter(visible=True, seen_at__gte=since)


@transaction.atomic
def form_groups(*, arm: Arm) -> list[Group]:
    """Form every full group that is possible now, the longest waiting first; none while the experiment is not open."""
    experiment = Experiment.objects.select_for_update().get(pk=arm.experiment_id)
    if experiment.state != Experiment.State.OPEN:
        return []
    entered_by = services.database_now() - timedelta(seconds=experiment.shortest_wait_s)
    ready = list(present(arm).filter(waiting_since__lte=entered_by).select_related("user"))
    full = [ready[at : at + arm.people] for at in range(0, len(ready) - arm.people + 1, arm.people)]
    groups = [seating.seat(experiment, arm, members) for members in full]
    return [group for group in groups if group is not None]


def end_waits(*, experiment_id: int) -> int:
    """Give those who have waited for too long their outcome; return how many there were.

    Each arm is a transaction of its own: tables lock their models in order, but only within one table.
    """
    return sum(_end_waits(arm) for arm in Arm.objects.filter(experiment=experiment_id))


@transaction.atomic
def _end_waits(arm: Arm) -> int:
    experiment = Experiment.objects.select_for_update().get(pk=arm.experiment_id)
    before = services.database_now() - timedelta(seconds=experiment.wait_seconds)
    late = list(waiting(arm).filter(waiting_since__lte=before).select_related("user", "experiment"))
    in_view = set(present(arm).values_list("pk", flat=True))
    can_play = arm.fallback and experiment.state == Experiment.State.OPEN
    ready = [each for each in late if each.pk in in_view] if can_play else []
    tables = [ready[at : at + arm.people] for at in range(0, len(ready), arm.people)]
    seated = [each for members in tables if seating.seat(experiment, arm, members, waited=True) for each in members]
    ended = [] if experiment.state == Experiment.State.PAUSED else [each for each in late if each not in seated]
    for participant in ended:
        states.end(participant, Outcome.WAITED, experiment.code_waited)
    return len(seated) + len(ended)
