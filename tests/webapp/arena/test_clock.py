"""The clock's steps for the table: a broken match does not delay the others."""

from datetime import timedelta

import pytest
from django.db import OperationalError

from tests.webapp.arena.conftest import negotiation
from webapp.arena import clock
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import tables, waiting_room
from webapp.runs.models import Checkpoint
from webapp.serving import services as serving
from webapp.serving.models import Deployment

pytestmark = pytest.mark.django_db


@pytest.fixture
def late(player, ben):
    """Two matches whose first seats are late, the one that is longer so first."""

    def overdue(seconds):
        places = [tables.Place(user=player), tables.Place(user=ben)]
        match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
        waiting_room.answer_consent(match=match, user=ben, agreed=True)
        match.due.update(deadline=services.database_now() - timedelta(seconds=seconds))
        return match

    return overdue(9), overdue(1)


def state(match):
    return Match.objects.get(pk=match.pk).state


def test_a_match_that_cannot_be_played_ends_and_the_next_deadline_is_kept(late, caplog):
    broken, sound = late
    Match.objects.filter(pk=broken.pk).update(scenario={})
    assert clock.time_out() == 1
    assert sound.moves.get().move["origin"] == "timeout"
    assert (state(broken), broken.due.count()) == (Match.State.ABORTED, 0)
    assert f"match {broken.pk} failed" in caplog.text
    assert "internal error" in Match.objects.get(pk=broken.pk).aborted_why


def test_a_match_whose_moves_do_not_replay_ends_too(late):
    broken, sound = late
    services.submit(match_id=broken.pk, seat=0, step=0, move=services.fold(broken).game.default(0))
    broken.moves.update(seat=1)
    broken.due.update(deadline=services.database_now() - timedelta(seconds=9))
    assert clock.time_out() == 1
    assert (state(broken), sound.moves.count()) == (Match.State.ABORTED, 1)


def test_a_deadlock_costs_a_match_one_tick(late, monkeypatch):
    first, second = late
    unlucky, time_out = first.due.get().pk, services.time_out

    def deadlocked(*, due_id):
        if due_id == unlucky:
            raise OperationalError("deadlock detected")
        return time_out(due_id=due_id)

    with monkeypatch.context() as patched:
        patched.setattr(services, "time_out", deadlocked)
        assert clock.time_out() == 1
    assert (first.moves.count(), second.moves.count()) == (0, 1)
    assert clock.time_out() == 1
    assert first.moves.get().move["origin"] == "timeout"


@pytest.mark.parametrize("model, ends_as", [("ready", Match.State.RUNNING), ("failed", Match.State.ABORTED)])
def test_models_that_start_or_fail_are_reported_without_a_scenario(player, model, ends_as):
    checkpoint = Checkpoint.objects.create(name="x", kind="base", base="x", path="/nowhere")
    places = [tables.Place(deployment=serving.of_checkpoint(checkpoint)), tables.Place(user=player)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    Match.objects.filter(pk=match.pk).update(scenario={})
    Deployment.objects.update(state=model)
    assert clock.start_clocks() == 1
    assert state(match) == ends_as


def test_everybody_at_a_stored_match_is_notified(two_people):
    assert services.viewers_of(two_people.pk) == services.viewers(services.scenario_of(two_people))
