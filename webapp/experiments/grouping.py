"""The waiting room: groups are formed of participants who are connected and look at their page, and of nobody else.

Participants wait at most the experiment's longest wait; then the arm's fallback takes the empty seats, or they leave
with the code for waiting. Each function but `end_waits` is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.urls import reverse

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import scenarios, tables
from webapp.arena.setup.players import Players
from webapp.arena.setup.tables import Place
from webapp.experiments import states
from webapp.experiments.models import PERSON, Arm, Experiment, Group, Participant, ParticipantQuerySet
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
    entered_by = services.database_now() - timedelta(seconds=experiment.hold_seconds)
    ready = list(present(arm).filter(waiting_since__lte=entered_by).select_related("user"))
    full = [ready[at : at + arm.people] for at in range(0, len(ready) - arm.people + 1, arm.people)]
    groups = [_try_group(experiment, arm, members) for members in full]
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
    seated = [each for each in late if each.pk in in_view][: arm.people] if arm.fallback else []
    if not seated or experiment.state != Experiment.State.OPEN or _try_group(experiment, arm, seated) is None:
        seated = []
    ended = [] if experiment.state == Experiment.State.PAUSED else [each for each in late if each not in seated]
    for participant in ended:
        states.end(participant, Outcome.WAITED, experiment.code_waited)
    return len(seated) + len(ended)


def _try_group(experiment: Experiment, arm: Arm, members: Sequence[Participant]) -> Group | None:
    """Seat these participants at a table; if it cannot be made, say why to the facilitator and let them wait."""
    try:
        with transaction.atomic():
            group = _group(experiment, arm, members)
    except BadInput as error:
        Arm.objects.filter(pk=arm.pk).update(problem=str(error)[:400])
        return None
    Arm.objects.filter(pk=arm.pk).update(problem="")
    return group


def _group(experiment: Experiment, arm: Arm, members: Sequence[Participant]) -> Group:
    drawn = scenarios.draw(arm.scenario, experiment.owner, arm.game, tables.new_seed(), len(arm.players))
    path = reverse("experiments:take", args=[experiment.token])
    start = tables.Start(drawn.scenario, drawn.source, arm.rules, shown_as=arm.shown_as, next_path=path)
    match = tables.create(
        host=experiment.owner,
        start=start,
        places=_places(experiment.owner, arm, members),
        visibility=Match.Visibility.PRIVATE,
        deadline_s=arm.deadline_s,
        shuffled=True,
        coaching=False,
    )
    group = Group.objects.create(arm=arm, match=match, filled=len(members) < arm.people)
    for participant in members:
        participant.group = group
        states.enter(participant, Stage.PLAY)
    return group


def _places(owner: User, arm: Arm, members: Sequence[Participant]) -> list[Place]:
    players, remaining = Players(owner, arm.spec), list(members)
    places = []
    for player in arm.players:
        if player == PERSON and remaining:
            participant = remaining.pop(0)
            places.append(Place(user=participant.user, consent=participant.may_reuse))
        else:
            places.append(place_of(players, arm.fallback if player == PERSON else player))
    return places


def place_of(players: Players, choice: str) -> Place:
    """The place of a player who is no participant; raises `BadInput` if it is not open to the owner any more."""
    kind, _, number = choice.partition(":")
    if kind == "checkpoint":  # also one that is too old to be listed
        players = Players(players.user, players.spec, int(number))
    if choice not in dict(players.choices()):
        raise BadInput(f"the player “{choice}” is gone, or not open to the experiment's owner any more", "players")
    return players.place(choice)
