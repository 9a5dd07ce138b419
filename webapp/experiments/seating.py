"""The table of a group: who sits where, the models that must be ready first, and the fallback after the longest wait.

A table is made once all of its models are ready, so that its game begins at once: a table that waits for a model would
tell its players that a model sits there. Until then the participants wait in the waiting room, as in every other arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Coalesce
from django.urls import reverse

from training.errors import BadInput
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import scenarios, tables
from webapp.arena.setup.players import Players
from webapp.arena.setup.tables import Place
from webapp.experiments import states
from webapp.experiments.models import PERSON, Arm, Experiment, Group, Participant
from webapp.experiments.states import Stage
from webapp.serving import services as serving
from webapp.serving.models import Deployment


@dataclass(frozen=True)
class Seating:
    """The places of one table; `filled`: the arm's fallback takes some of them."""

    places: Sequence[Place]
    filled: bool

    @property
    def deployments(self) -> list[Deployment]:
        """The models that play at the table."""
        return [model for place in self.places for model in place.deployments]


def request_models(arm: Arm) -> None:
    """Request the models of an arm, as somebody enters its waiting room; one that failed to start is tried again."""
    with suppress(BadInput):  # `seat` reports a player or a game that no longer exists
        players = Players(arm.experiment.owner, arm.spec)
        places = [place_of(players, player) for player in arm.players if player != PERSON]
        serving.request_all(deployments=[model for place in places for model in place.deployments])


def seat(experiment: Experiment, arm: Arm, members: Sequence[Participant], *, waited: bool = False) -> Group | None:
    """Seat these participants at a table; if it cannot be made, say why to the facilitator and let them wait.

    `waited`: the longest wait is over, so that the arm's fallback takes the seats of people and models that are
    missing. Callers hold the lock of the experiment.
    """
    try:
        seating = _seating(experiment, arm, members, waited=waited)
        _check_models(seating.deployments)
        with transaction.atomic():
            group = _group(experiment, arm, members, seating)
    except BadInput as error:
        since = Coalesce("problem_since", Value(services.database_now()))
        Arm.objects.filter(pk=arm.pk).update(problem=str(error)[:400], problem_since=since)
        return None
    Arm.objects.filter(pk=arm.pk).update(problem="", problem_since=None)
    return group


def _seating(experiment: Experiment, arm: Arm, members: Sequence[Participant], *, waited: bool) -> Seating:
    players, remaining, filled = Players(experiment.owner, arm.spec), list(members), False
    places = []
    for player in arm.players:
        if player == PERSON and remaining:
            participant = remaining.pop(0)
            places.append(Place(user=participant.user, consent=participant.may_reuse))
            continue
        falls_back = player == PERSON or (waited and not _is_ready(players, player))
        places.append(place_of(players, arm.fallback if falls_back else player))
        filled |= falls_back
    return Seating(places, filled)


def _is_ready(players: Players, player: str) -> bool:
    """Whether a player who is no participant can begin now."""
    try:
        models = place_of(players, player).deployments
    except BadInput:
        return False
    return all(model.remote_id is not None or model.state == Deployment.State.READY for model in models)


def _check_models(models: Sequence[Deployment]) -> None:
    """Request these models; raises `BadInput` that names the first one that is not ready."""
    for model in models:
        if model.state == Deployment.State.FAILED:  # a request here would start it again and again
            raise BadInput(f"{model} could not be started: {model.error or 'no reason is known'}")
    ready = serving.request_all(deployments=models)
    for model in models:
        if model.pk not in ready:
            raise BadInput(f"{model} is starting")


def _group(experiment: Experiment, arm: Arm, members: Sequence[Participant], seating: Seating) -> Group:
    drawn = scenarios.draw(arm.scenario, experiment.owner, arm.game, tables.new_seed(), len(arm.players))
    path = reverse("experiments:participate", args=[experiment.token])
    start = tables.Start(drawn.scenario, drawn.source, arm.rules, shown_as=arm.shown_as, next_path=path)
    match = tables.create(
        host=experiment.owner,
        start=start,
        places=seating.places,
        visibility=Match.Visibility.PRIVATE,
        deadline_s=arm.deadline_s,
        shuffled=True,
        coaching=False,
    )
    if match.state != Match.State.RUNNING:
        raise BadInput("its game did not begin")
    group = Group.objects.create(arm=arm, match=match, filled=seating.filled)
    for participant in members:
        participant.group = group
        states.enter(participant, Stage.PLAY)
    return group


def place_of(players: Players, choice: str) -> Place:
    """The place of a player who is no participant; raises `BadInput` if it is not open to the owner any more."""
    kind, _, number = choice.partition(":")
    if kind == "checkpoint":  # also one that is too old to be listed
        players = Players(players.user, players.spec, int(number))
    if choice not in dict(players.choices()):
        raise BadInput(f"the player “{choice}” is gone, or not open to the experiment's owner any more", "players")
    return players.place(choice)
