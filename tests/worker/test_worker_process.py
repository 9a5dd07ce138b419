"""A real worker on a real broker: it takes runs, survives hints that were lost, and leaves in good order."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from tests.elsewhere import database_address
from tests.worker.conftest import processes_of, wait_until
from webapp.core import health, pids, queue
from webapp.core.circuit import Circuit
from webapp.core.models import Heartbeat
from webapp.runs import attempts
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]
ROOT = Path(__file__).resolve().parents[2]
LEASE = 2.0
"""Seconds, as in `stand_in_settings`."""


@pytest.fixture
def worker(quick, tmp_path):
    """Starts `celery worker` for the training queue, against the test's database and storage."""
    quick.MEDIA_ROOT = tmp_path / "files"
    quick.RUNS_ROOT = tmp_path / "files" / "runs"
    environment = {
        **os.environ,
        "DATABASE_URL": database_address(),
        "REDIS_URL": django_settings.REDIS_URL,
        "PARLEY_HOME": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "tests.worker.stand_in_settings",
    }
    started = []

    def start():
        command = [sys.executable, "-m", "celery", "-A", "worker.app", "worker", "--queues", "train-cpu"]
        command += ["--pool", "threads", "--concurrency", "1", "--loglevel", "warning"]
        command += ["--hostname", "train@same"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def state(run):
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def test_a_worker_that_shuts_down_saves_and_another_continues(worker, make_run):
    run = make_run(steps=60, seconds=0.1)
    first = worker()
    wait_until(lambda: run.metrics.count() >= 3, seconds=60)
    assert health.check()["workers"][0]["queues"] == ("train-cpu",)
    first.send_signal(signal.SIGTERM)
    assert first.wait(40) == 0
    assert state(run) == "queued"
    assert processes_of(run) == []
    assert not Heartbeat.objects.filter(kind="worker").exists()

    worker()
    wait_until(lambda: attempts.repeat_hints() == 0, seconds=60, pause=1.0)
    wait_until(lambda: state(run) == "succeeded", seconds=60)
    steps = list(run.metrics.order_by("step").values_list("step", flat=True))
    assert steps == list(range(1, 61))
    assert [attempt.start_step > 0 for attempt in run.attempts.order_by("number")] == [False, True]


def test_a_start_whose_hint_was_lost_runs_exactly_once(worker, make_run, settings, monkeypatch):
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
    with monkeypatch.context() as broken:
        broken.setattr(queue, "sender", queue.make_sender())
        broken.setattr(queue, "CIRCUIT", Circuit(lambda: None))
        run = make_run(steps=3)
    assert state(run) == "queued"
    worker()
    for _ in range(3):
        attempts.repeat_hints()
    wait_until(lambda: state(run) == "succeeded", seconds=60)
    assert run.attempts.count() == 1


def test_a_hanging_process_of_a_killed_worker_is_killed_by_the_next_one_of_its_name(worker, make_run):
    """The worker's own reaper dies with it, and the process does not listen: only the next worker can end it."""
    run = make_run(steps=60, seconds=0.1, freeze_at=3)
    first = worker()
    wait_until(lambda: run.metrics.count() >= 2, seconds=60)
    (orphan,) = wait_until(lambda: processes_of(run))
    first.kill()
    first.wait()
    killed = time.monotonic()
    wait_until(lambda: attempts.lapse_overdue() and state(run) == "queued", seconds=10)
    assert time.monotonic() - killed < 2 * LEASE
    assert pids.start_time(orphan) is not None, "frozen: it does not notice that its worker is gone"
    Run.objects.filter(pk=run.pk).update(state="stopped")
    worker()
    wait_until(lambda: pids.start_time(orphan) is None, seconds=40)
    assert processes_of(run) == []
