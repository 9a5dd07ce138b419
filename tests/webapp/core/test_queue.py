"""Hints: sent after commit, never after a rollback; a broker that is away breaks nothing."""

import time

import pytest
from django.db import transaction

from webapp.core import queue
from webapp.core.circuit import Circuit


class Rollback(Exception):
    pass


@pytest.fixture
def sent(monkeypatch):
    calls = []
    monkeypatch.setattr(queue.sender, "send_task", lambda name, args, queue, **_: calls.append((name, args, queue)))
    return calls


@pytest.mark.django_db(transaction=True)
def test_a_hint_waits_for_the_commit(sent):
    with transaction.atomic():
        queue.send(queue.SUPERVISE, 7, queue="train-gpu")
        assert sent == []
    assert sent == [("runs.supervise", (7,), "train-gpu")]


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_start_sends_nothing(sent):
    def start():
        with transaction.atomic():
            queue.send(queue.SUPERVISE, 7)
            raise Rollback

    with pytest.raises(Rollback):
        start()
    assert sent == []


@pytest.mark.process
def test_a_broker_that_is_away_is_logged_and_costs_little_time(caplog, monkeypatch, settings):
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
    monkeypatch.setattr(queue, "sender", queue.make_sender())
    monkeypatch.setattr(queue, "CIRCUIT", Circuit(lambda: None))
    started = time.monotonic()
    assert queue.publish(queue.SUPERVISE, 7) is False
    assert time.monotonic() - started < 1
    assert "the clock will repeat it" in caplog.text


def test_every_default_queue_exists():
    assert {task.queue for task in queue.TASKS.values()} <= set(queue.QUEUES)
