"""Tables with models: no table waits for one, the facilitator reads why, and the longest wait ends it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tests.webapp.experiments import making
from tests.webapp.runs.making import make_checkpoint, make_run
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.play import hosting, services
from webapp.experiments import facilitating, grouping, leaving, participation
from webapp.experiments.models import PERSON, Experiment, Participant
from webapp.experiments.views import participant as views
from webapp.serving import services as serving
from webapp.serving.models import Deployment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home")]
COLD, STARTING, READY, FAILED = (Deployment.State[name] for name in ("COLD", "STARTING", "READY", "FAILED"))


@pytest.fixture
def model(admin: User) -> Deployment:
    """A model that has not been started."""
    return serving.of_checkpoint(make_checkpoint(make_run(admin), name="big"))


def study(owner: User, model: Deployment, **changes: Any) -> Experiment:
    """An open experiment with one participant and the model at each table."""
    fallback = changes.pop("fallback", "")
    made = making.experiment(owner, code_waited="WAIT1", **changes)
    making.arm(made, "only", [PERSON, f"checkpoint:{model.checkpoint_id}"], fallback=fallback)
    making.design.open_experiment(experiment=made)
    return Experiment.objects.get(pk=made.pk)


def set_state(model: Deployment, state: Deployment.State, error: str = "") -> None:
    Deployment.objects.filter(pk=model.pk).update(state=state, error=error)


def late(*participants: Participant) -> None:
    long_ago = services.database_now() - timedelta(minutes=6)
    Participant.objects.filter(pk__in=[each.pk for each in participants]).update(waiting_since=long_ago)


def test_nobody_sits_at_a_table_that_waits_for_a_model(researcher: User, model: Deployment) -> None:
    experiment = study(researcher, model)
    participant = making.come(experiment)
    model.refresh_from_db()
    assert model.requested_at is not None, "it is requested as soon as somebody waits"
    for state in (COLD, STARTING):
        set_state(model, state)
        assert participation.heartbeat(participant=participant, visible=True).stage == "wait"
    assert not Match.objects.exists()
    set_state(model, READY)
    assert participation.heartbeat(participant=participant, visible=True).stage == "play"
    match = Match.objects.get()
    assert match.state == "running"
    assert sorted(match.seats.values_list("kind", flat=True)) == ["model", "person"]
    arm = experiment.arms.get()
    assert (arm.problem, arm.problem_since) == ("", None)


def test_the_facilitator_reads_why_and_since_when(researcher: User, client: Client, model: Deployment) -> None:
    experiment = study(researcher, model)
    participant = making.come(experiment)
    participation.heartbeat(participant=participant, visible=True)
    since = experiment.arms.get().problem_since
    assert since is not None
    earlier = since - timedelta(seconds=200)
    experiment.arms.update(problem_since=earlier)
    participation.heartbeat(participant=participant, visible=True)
    arm = experiment.arms.get()
    assert (arm.problem, arm.problem_since) == ("big is starting", earlier), "the first time is kept"
    client.force_login(researcher)
    page = client.get(f"/experiments/{experiment.pk}/monitor/").content.decode()
    assert f"No table since {earlier:%H:%M:%S} UTC (3 min 2" in page
    assert "big is starting" in page


def test_the_longest_wait_for_a_model_ends_with_the_code(researcher: User, model: Deployment) -> None:
    participant = making.come(study(researcher, model))
    late(participant)
    assert grouping.end_waits(experiment_id=participant.experiment_id) == 1
    participant.refresh_from_db()
    assert (participant.outcome, participant.code) == ("waited", "WAIT1")


def test_the_fallback_takes_the_seat_of_a_model_that_has_not_started(researcher: User, model: Deployment) -> None:
    """Of everybody who has waited too long: each of them has a table of their own."""
    experiment = study(researcher, model, fallback="scripted:scripted")
    people = [making.come(experiment) for _ in range(3)]
    late(*people)
    assert grouping.end_waits(experiment_id=experiment.pk) == 3
    for participant in people:
        participant.refresh_from_db()
        assert (participant.stage, participant.outcome) == ("play", "")
        assert participant.group is not None
        assert participant.group.filled
        assert participant.group.match.state == "running"
        assert sorted(participant.group.match.seats.values_list("kind", flat=True)) == ["person", "scripted"]


def test_the_fallback_leaves_the_seat_of_a_model_that_is_ready(researcher: User, model: Deployment) -> None:
    made = making.experiment(researcher)
    players = [PERSON, PERSON, f"checkpoint:{model.checkpoint_id}", "scripted:scripted", "scripted:scripted"]
    making.arm(made, "five", players, game="werewolf", fallback="scripted:scripted")
    making.design.open_experiment(experiment=made)
    participant = making.come(Experiment.objects.get(pk=made.pk))
    set_state(model, READY)
    late(participant)
    assert grouping.end_waits(experiment_id=made.pk) == 1
    kinds = sorted(Match.objects.get().seats.values_list("kind", flat=True))
    assert kinds == ["model", "person", "scripted", "scripted", "scripted"]


def test_a_model_that_failed_is_reported_and_tried_again_for_the_next_newcomer(
    researcher: User, model: Deployment
) -> None:
    experiment = study(researcher, model)
    participant = making.come(experiment)
    set_state(model, FAILED, "out of memory")
    participation.heartbeat(participant=participant, visible=True)
    model.refresh_from_db()
    assert model.state == FAILED, "heartbeats do not start it again and again"
    assert experiment.arms.get().problem == "big could not be started: out of memory"
    making.come(experiment)
    model.refresh_from_db()
    assert (model.state, model.error) == (COLD, "")


@pytest.mark.parametrize("how", ["silent", "removed", "withdrawn"])
def test_who_goes_while_the_model_starts_leaves_no_table(researcher: User, model: Deployment, how: str) -> None:
    """There is no table yet at which a stand-in would have to move: the place goes to the next newcomer."""
    experiment = study(researcher, model, per_arm=1)
    participant = making.come(experiment)
    participation.heartbeat(participant=participant, visible=True)
    if how == "silent":
        Participant.objects.update(seen_at=services.database_now() - timedelta(seconds=90))
        assert leaving.leave(participant_id=participant.pk)
    elif how == "removed":
        facilitating.replace(participant=participant)
    else:
        participation.withdraw(participant=participant)
    set_state(model, READY)
    assert grouping.form_groups(arm=experiment.arms.get()) == []
    assert not Match.objects.exists()
    assert making.seated(experiment).stage == "play"


def test_the_waiting_room_does_not_tell_that_a_model_starts(
    researcher: User, client: Client, model: Deployment
) -> None:
    experiment = study(researcher, model)
    link = f"/experiments/take/{experiment.token}/"
    client.post(f"{link}begin/", {"agree": "yes"})
    page = (
        client.get(link).content.decode()
        + client.post(f"{link}heartbeat/", {"stage": "wait", "visible": "1"}).content.decode()
    )
    assert page.count("Your table is being prepared.") == 2
    assert "big" not in page
    assert "model" not in page.partition("<main")[2].replace("train models", "")


@pytest.mark.parametrize("twice", [False, True])
def test_the_debriefing_names_the_model_that_a_stand_in_replaced(
    researcher: User, model: Deployment, *, twice: bool
) -> None:
    set_state(model, READY)
    participant = making.seated(study(researcher, model))
    assert participant.group is not None
    match = participant.group.match
    seat = match.seats.get(user=None)
    for _ in range(1 + twice):
        hosting.replace(match=match, number=seat.seat)
    assert views.others(participant) == [(seat.name, "a language model, and then a scripted player")]


def test_a_script_and_its_stand_in_are_both_named(researcher: User) -> None:
    participant = making.seated(making.opened(researcher))
    assert participant.group is not None
    seat = participant.group.match.seats.get(user=None)
    hosting.replace(match=participant.group.match, number=seat.seat)
    assert views.others(participant) == [(seat.name, "a computer player without a model, and then a scripted player")]
