"""The clock: each step in its turn, whatever the others do."""

from unittest.mock import Mock

import pytest
from django.db import InterfaceError, OperationalError

from webapp.core import clock
from webapp.core.models import Heartbeat, beat


@pytest.fixture
def steps(monkeypatch):
    monkeypatch.setattr(clock, "STEPS", {})
    return clock.STEPS


def test_a_step_that_fails_does_not_stop_the_others(steps, caplog):
    @clock.register("broken")
    def broken():
        raise ValueError("no")

    clock.register("fine")(lambda: 3)
    assert clock.tick(now=1.0) == {"broken": -1, "fine": 3}
    assert "clock step broken failed" in caplog.text


def test_a_step_is_done_at_most_as_often_as_it_asks(steps):
    clock.register("often")(lambda: 1)
    clock.register("seldom", every=10)(lambda: 1)
    done = [sorted(clock.tick(now=now)) for now in (1.0, 1.6, 2.2, 11.1)]
    assert done == [["often", "seldom"], ["often"], ["often"], ["often", "seldom"]]


@pytest.mark.django_db(transaction=True)
def test_it_beats_while_it_runs_and_leaves_no_row_behind(steps):
    seen = []
    clock.register("look", every=0)(lambda: seen.append(Heartbeat.objects.count()) or 0)
    answers = iter([False, False, True])
    clock.run(lambda: next(answers), pause=0.0)
    assert seen == [0, 1]
    assert Heartbeat.objects.count() == 0


@pytest.mark.parametrize("wrong", [OperationalError("server closed"), InterfaceError("connection is closed")])
def test_it_continues_without_the_database(db, steps, monkeypatch, caplog, wrong):
    ticks, away = [], Mock(side_effect=wrong)
    clock.register("due")(lambda: ticks.append(1) or 0)
    clock.STEPS["due"].every = 0
    monkeypatch.setattr(clock, "beat", away)
    monkeypatch.setattr(Heartbeat.objects, "filter", away)
    monkeypatch.setattr(clock, "close_old_connections", lambda: None)
    answers = iter([False, False, False, True])
    clock.run(lambda: next(answers), pause=0.0)
    assert len(ticks) == 3
    assert caplog.text.count("clock could not beat") == 3


def test_a_fault_of_its_own_is_not_swallowed(db, steps, monkeypatch):
    monkeypatch.setattr(clock, "beat", Mock(side_effect=TypeError("a mistake")))
    with pytest.raises(TypeError):
        clock.run(lambda: False, pause=0.0)


def test_a_beat_updates_its_own_row(db):
    beat(Heartbeat.Kind.WORKER, "w1", queues=["play"])
    beat(Heartbeat.Kind.WORKER, "w1", queues=["play", "judge"])
    assert Heartbeat.objects.get().detail == {"queues": ["play", "judge"]}
