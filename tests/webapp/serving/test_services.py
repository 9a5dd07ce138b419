"""Deployments: started on need, one slot at a time, stopped when idle, honest when they fail."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from tests.elsewhere import begin, until_somebody_waits
from training.errors import BadInput
from webapp.core import queue
from webapp.core.models import Heartbeat
from webapp.runs import attempts
from webapp.runs.models import Checkpoint, Run
from webapp.serving import services
from webapp.serving.models import Deployment, RemoteModel

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def hints(monkeypatch):
    sent = []
    monkeypatch.setattr(queue, "send", lambda task, *args, queue=None, **_: sent.append((task.name, queue)))
    return sent


@pytest.fixture
def make(admin):
    def checkpoint(name="tiny"):
        return services.of_checkpoint(Checkpoint.objects.create(name=name, kind="base", base=name, path="/models/x"))

    return checkpoint


def fresh(deployment):
    return Deployment.objects.get(pk=deployment.pk)


def up(deployment, used_minutes_ago=0):
    services.request(deployment=deployment)
    services.settle()
    Run.objects.filter(pk=fresh(deployment).run_id).update(state=Run.State.RUNNING)
    services.ready(run_id=fresh(deployment).run_id, address="http://127.0.0.1:9/v1")
    moment = timezone.now() - timedelta(minutes=used_minutes_ago)
    Deployment.objects.filter(pk=deployment.pk).update(used_at=moment, requested_at=None)


def test_a_model_is_found_by_the_value_of_a_form_where_it_is_open(admin, player):
    checkpoint = Checkpoint.objects.create(name="tiny", kind="base", base="tiny", path="/models/x")
    local = services.of_checkpoint(checkpoint)
    record = RemoteModel.objects.create(name="far", address="http://127.0.0.1:9/v1", model="m", added_by=admin)
    remote = Deployment.objects.create(remote=record, state=Deployment.State.READY)
    by_checkpoint, by_deployment = f"checkpoint:{checkpoint.pk}", f"deployment:{remote.pk}"
    assert services.find(by_checkpoint, user=admin) == local
    assert services.find(by_deployment, user=admin) == remote
    assert services.find(f"deployment:{local.pk}", user=admin) is None, "a model of the site goes by its checkpoint"
    for value in ("", "checkpoint", "checkpoint:0", "checkpoint:\u0661", "deployment:" + "9" * 30, f"run:{remote.pk}"):
        assert services.find(value, user=admin) is None
    assert [services.find(value, user=player) for value in (by_checkpoint, by_deployment)] == [None, None]
    Checkpoint.objects.update(open_to_players=True)
    RemoteModel.objects.update(open_to_players=True)
    assert [services.find(value, user=player) for value in (by_checkpoint, by_deployment)] == [local, remote]


def test_from_cold_to_ready_and_back(make, hints):
    deployment = make()
    assert services.settle() == 0  # nobody needs it
    assert not services.request(deployment=deployment)
    services.settle()
    starting = fresh(deployment)
    assert (starting.state, starting.run.kind, starting.run.queue) == ("starting", "serve", "serve")
    assert hints == [("runs.supervise", "serve")]
    assert len(starting.key) >= 32
    services.ready(run_id=starting.run_id, address="http://127.0.0.1:9/v1")
    assert services.request(deployment=deployment)
    services.stop(deployment=deployment)
    assert fresh(deployment).state == "stopping"
    assert Run.objects.get(pk=starting.run_id).stop_asked_at is not None
    services.ended(run_id=starting.run_id)
    gone = fresh(deployment)
    assert (gone.state, gone.address, gone.key) == ("cold", "", "")


def test_a_request_of_a_model_that_is_stopping_starts_it_again(make):
    deployment = make()
    up(deployment)
    first = fresh(deployment).run_id
    services.request(deployment=deployment)
    services.stop(deployment=deployment)
    assert not fresh(deployment).requested_at, "an earlier request is withdrawn"
    assert not services.request(deployment=deployment)
    services.ended(run_id=first)
    services.settle()
    assert (fresh(deployment).state, fresh(deployment).run_id == first) == ("starting", False)


def test_every_start_has_a_key_of_its_own(make):
    deployment = make()
    keys = set()
    for _ in range(2):
        up(deployment)
        keys.add(fresh(deployment).key)
        services.stop(deployment=deployment)
        services.ended(run_id=fresh(deployment).run_id)
    assert len(keys) == 2


def test_a_failure_is_reported_and_the_next_request_tries_again(make):
    deployment = make()
    services.request(deployment=deployment)
    services.settle()
    services.ended(run_id=fresh(deployment).run_id, error="out of memory")
    assert (fresh(deployment).state, fresh(deployment).error) == ("failed", "out of memory")
    services.settle()
    assert fresh(deployment).state == "failed"  # not by itself
    services.request(deployment=deployment)
    services.settle()
    assert (fresh(deployment).state, fresh(deployment).error) == ("starting", "")


def test_reports_of_an_older_run_change_nothing(make):
    deployment = make()
    up(deployment)
    old = fresh(deployment).run_id
    services.stop(deployment=deployment)
    services.ended(run_id=old)
    services.request(deployment=deployment)
    services.settle()
    services.ready(run_id=old, address="http://127.0.0.1:1/v1")
    assert fresh(deployment).state == "starting"
    services.ended(run_id=old, error="late")
    assert fresh(deployment).state == "starting"


def beats(worker, node, slots=None, seconds_ago=0):
    """A worker of a node that said so long ago that it is alive; with `slots` it serves models."""
    detail = {"queues": ["play"], "node": node} if slots is None else {"node": node, "serve_slots": slots}
    moment = timezone.now() - timedelta(seconds=seconds_ago)
    Heartbeat.objects.create(kind="worker", name=worker, beaten_at=moment, detail=detail)


def test_every_node_has_slots_of_its_own(make, settings):
    settings.SERVE_SLOTS = 1  # this node's, which does not matter where others have said theirs
    beats("a1", "a", 2)
    beats("a2", "a", 2)  # a second worker of the same node adds nothing
    beats("b1", "b", 1)
    beats("c1", "c", 9, seconds_ago=60)  # dead
    beats("d1", "d")
    deployments = [make(name) for name in "vwxyz"]
    for deployment in deployments:
        services.request(deployment=deployment)
    services.settle()
    assert sorted(fresh(d).state for d in deployments) == ["cold", "cold", "starting", "starting", "starting"]


def test_a_node_takes_no_more_than_its_slots(make, settings):
    settings.SERVE_SLOTS = 2
    beats("a1", "a", 2)
    beats("b1", "b", 2)
    deployments = [make(name) for name in "xyz"]
    for deployment in deployments:
        services.request(deployment=deployment)
    services.settle()
    runs = [fresh(deployment).run_id for deployment in deployments]
    taken = [attempts.claim(run_id=run, worker="w", host="a") for run in runs]
    assert [attempt is not None for attempt in taken] == [True, True, False]
    assert Run.objects.get(pk=runs[2]).state == "queued"
    assert attempts.repeat_serve_hints() == 1
    assert attempts.claim(run_id=runs[2], worker="w", host="b") is not None
    attempts.finish(attempt=taken[0], state="stopped", exit_code=0)
    later = Run.objects.create(kind="serve", name="later", owner=Run.objects.first().owner, queue="serve", config={})
    assert attempts.claim(run_id=later.pk, worker="w", host="a") is not None


def test_a_full_node_still_trains(make, settings, admin):
    settings.SERVE_SLOTS = 0
    run = Run.objects.create(kind="train", name="t", owner=admin, queue="train-cpu", config={})
    assert attempts.claim(run_id=run.pk, worker="w", host="a") is not None


def test_the_least_recently_used_yields_its_slot(make, settings):
    settings.SERVE_SLOTS = 2
    first, second, third = make("a"), make("b"), make("c")
    up(first, used_minutes_ago=9)
    up(second, used_minutes_ago=5)
    services.request(deployment=third)
    services.settle()
    assert [fresh(d).state for d in (first, second, third)] == ["stopping", "ready", "cold"]
    services.settle()
    assert fresh(second).state == "ready"  # one slot is being freed already
    services.ended(run_id=fresh(first).run_id)
    services.settle()
    assert [fresh(d).state for d in (first, second, third)] == ["cold", "ready", "starting"]


def test_one_that_was_just_used_does_not_yield(make, settings):
    settings.SERVE_SLOTS = 1
    first, second = make("a"), make("b")
    up(first)
    services.request(deployment=second)
    services.settle()
    assert [fresh(d).state for d in (first, second)] == ["ready", "cold"]


def test_one_that_is_thinking_does_not_yield(make, settings, player):
    from tests.webapp.arena.conftest import negotiation
    from webapp.arena.play import model_seats
    from webapp.arena.setup import tables

    settings.SERVE_SLOTS = 1
    first, second = make("a"), make("b")
    up(first)
    places = [tables.Place(deployment=first), tables.Place(user=player)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    assert model_seats.claim(due_id=match.due.get().pk) is not None
    Deployment.objects.filter(pk=first.pk).update(used_at=timezone.now() - timedelta(minutes=5))
    services.request(deployment=second)
    services.settle()
    assert fresh(first).state == "ready"
    match.due.update(claimed_until=None)
    services.settle()
    assert fresh(first).state == "stopping"


def test_one_that_no_worker_has_taken_stops_at_once_and_frees_its_slot(make, settings):
    settings.SERVE_SLOTS = 1
    first, second = make("a"), make("b")
    services.request(deployment=first)
    services.settle()
    services.request(deployment=second)
    services.stop(deployment=first)
    assert Run.objects.get().state == Run.State.STOPPED
    services.settle()
    assert [fresh(d).state for d in (first, second)] == ["cold", "starting"]
    assert attempts.claim(run_id=fresh(first).run_id, worker="w", host="a") is None


@pytest.mark.django_db(transaction=True)
def test_waiting_for_one_model_does_not_delay_another(make, player):
    """Else two tables with the same models at opposite seats could wait for each other."""
    from tests.webapp.arena.conftest import negotiation
    from webapp.arena.setup import tables

    first, second = make("a"), make("b")
    places = [tables.Place(deployment=second), tables.Place(deployment=first)]
    locked = Deployment.objects.select_for_update(nowait=True)
    with transaction.atomic():
        locked.get(pk=first.pk)
        table = begin(lambda: tables.create(host=player, start=tables.Start(negotiation()), places=places))
        until_somebody_waits()
        locked.get(pk=second.pk)
    assert table.result(10).state == "running"


def test_a_table_that_asks_again_keeps_its_place(make, settings):
    """A table whose models are not all ready repeats its requests every second."""
    settings.SERVE_SLOTS = 1
    first, second = make("first"), make("second")
    services.request(deployment=first)
    Deployment.objects.filter(pk=first.pk).update(requested_at=timezone.now() - timedelta(minutes=5))
    services.request(deployment=second)
    services.request_all(deployments=[first])
    services.settle()
    assert (fresh(first).state, fresh(second).state) == ("starting", "cold")


def test_a_request_counts_for_the_person_who_made_it_only(make, settings, researcher):
    """A table asks later for the same model, whose earlier request came from a person."""
    settings.QUOTAS = {**settings.QUOTAS, "requested_models": {"researcher": 1}}
    first, second, third = make("first"), make("second"), make("third")
    services.request(deployment=first, by=researcher)
    services.settle()
    services.stop(deployment=first)
    services.ended(run_id=fresh(first).run_id)
    services.request_all(deployments=[first])
    services.request(deployment=second, by=researcher)
    assert [fresh(deployment).requested_by for deployment in (first, second)] == [None, researcher]
    with pytest.raises(BadInput, match="limit of 1 models that wait to be started"):
        services.request(deployment=third, by=researcher)


def test_idle_ones_are_stopped(make):
    deployment = make()
    up(deployment, used_minutes_ago=14)
    services.settle()
    assert fresh(deployment).state == "ready"
    up_since = timezone.now() - services.IDLE - timedelta(seconds=1)
    Deployment.objects.update(used_at=up_since)
    services.settle()
    assert fresh(deployment).state == "stopping"


def test_one_whose_worker_died_is_not_up(make):
    deployment = make()
    up(deployment)
    Run.objects.filter(pk=fresh(deployment).run_id).update(state=Run.State.FAILED, error="the worker was silent")
    services.settle()
    assert (fresh(deployment).state, fresh(deployment).error) == ("failed", "the worker was silent")


def test_remote_models_need_an_allowed_address(admin, monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "https://models.example.org/v1")
    fields = {"by": admin, "model": "m", "secret_name": "", "open_to_players": False}
    for address in ("https://evil.example/v1", "http://169.254.169.254/v1", "nonsense", "file:///etc/passwd"):
        with pytest.raises(BadInput):
            services.add_remote(name="x", address=address, **fields)
    with pytest.raises(BadInput, match="_API_KEY"):
        services.add_remote(
            name="x", address="https://models.example.org/v1", **{**fields, "secret_name": "DATABASE_URL"}
        )
    monkeypatch.setenv("MODEL_ADDRESSES", "https://models.example.org/v1,https://other.example.org/v1=OTHER_API_KEY")
    with pytest.raises(BadInput, match=r"OTHER_API_KEY may not be sent to models\.example\.org") as caught:
        services.add_remote(
            name="x", address="https://models.example.org/v1", **{**fields, "secret_name": "OTHER_API_KEY"}
        )
    assert caught.value.where == "secret"  # the form's field
    assert not Deployment.objects.exists()
    made = services.add_remote(name="x", address="https://models.example.org/v1", **fields)
    assert services.request(deployment=made)


def test_an_address_that_is_no_longer_allowed_is_refused_when_asked(admin, monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "https://models.example.org/v1")
    made = services.add_remote(
        by=admin, name="x", address="https://models.example.org/v1", model="m", secret_name="", open_to_players=False
    )
    monkeypatch.setenv("MODEL_ADDRESSES", "")
    with pytest.raises(BadInput, match="allowed"):
        services.chat_model(made, timeout_s=1)


def test_what_sat_at_a_match_is_not_removed(admin, player, monkeypatch):
    from tests.webapp.arena.conftest import negotiation
    from webapp.arena.setup import tables

    monkeypatch.setenv("MODEL_ADDRESSES", "https://models.example.org/v1")
    made = services.add_remote(
        by=admin, name="x", address="https://models.example.org/v1", model="m", secret_name="", open_to_players=True
    )
    places = [tables.Place(deployment=made), tables.Place(user=player)]
    tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    with pytest.raises(BadInput, match="record"):
        services.remove_remote(remote=made.remote)
