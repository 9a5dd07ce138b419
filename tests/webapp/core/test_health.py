"""What check_health says, with every part up and with each one missing."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models.functions import Now

from webapp.core import health
from webapp.core.models import Heartbeat, beat

SERVED = ["train-cpu", "serve", "play", "judge", "default"]


@pytest.fixture
def alive(db):
    beat(Heartbeat.Kind.CLOCK, "clock@here")
    beat(Heartbeat.Kind.WORKER, "cpu@here", queues=SERVED)


def test_everything_up(alive):
    state = health.check()
    assert (state["ok"], state["problems"]) == (True, [])
    assert state["clocks"][0]["age"] < 5
    assert state["workers"][0]["queues"] == tuple(SERVED)


def test_the_command_prints_one_object_and_exits_0(alive):
    out = StringIO()
    call_command("check_health", "--json", stdout=out)
    assert json.loads(out.getvalue())["ok"] is True


def test_a_silent_clock_and_an_unserved_queue_are_problems(alive):
    Heartbeat.objects.filter(kind="clock").update(beaten_at=Now() - timedelta(seconds=60))
    Heartbeat.objects.filter(kind="worker").update(detail={"queues": ["play"]})
    assert health.check()["problems"] == [
        "clock: none is running (manage.py clock)",
        "workers: nobody serves train-cpu, serve, judge, default",
    ]
    with pytest.raises(SystemExit, match="1"):
        call_command("check_health", stdout=StringIO(), stderr=StringIO())


def test_redis_away_is_a_finding(alive, settings):
    settings.REDIS_URL = "unix:///nowhere/server.sock"
    state = health.check()
    assert not state["ok"]
    assert state["redis"]["ok"] is False


def test_a_dead_worker_is_reported_for_a_while_and_then_forgotten(alive, caplog):
    beat(Heartbeat.Kind.WORKER, "old@here", queues=["play"])
    Heartbeat.objects.filter(name="old@here").update(beaten_at=Now() - timedelta(seconds=100))
    workers = {worker["name"]: worker for worker in health.check()["workers"]}
    assert (workers["cpu@here"]["ok"], workers["old@here"]["ok"]) == (True, False)
    assert workers["old@here"]["why"] == "no heartbeat for 100 s; forgotten after 900 s"
    assert health.check()["ok"], "another worker serves its queue"
    assert health.forget_dead() == 0
    Heartbeat.objects.filter(name="old@here").update(beaten_at=Now() - timedelta(seconds=901))
    assert [worker["name"] for worker in health.check()["workers"]] == ["cpu@here"]
    assert health.forget_dead() == 1
    assert "old@here has given no heartbeat for 900 s and is forgotten" in caplog.text
    assert set(Heartbeat.objects.values_list("name", flat=True)) == {"clock@here", "cpu@here"}
