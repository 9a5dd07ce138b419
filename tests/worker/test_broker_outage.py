"""The broker is away: no run is lost, each runs once, and workers consume again within thirty seconds.

The broker is a Valkey of this test's own, which is stopped and started; rows are the work, messages only hints.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from kombu.utils import functional

from tests.elsewhere import database_address
from tests.worker.conftest import processes_of, wait_until
from webapp.core import circuit, embedded, health, queue
from webapp.core.models import Heartbeat
from webapp.runs import attempts, services
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
OUTAGES = 10
LASTS = float(os.environ.get("OUTAGE_SECONDS", "0"))
"""How long each outage lasts: as long as the test needs, or 60 s to measure (OUTAGE_SECONDS=60, eleven minutes)."""
AGAIN_WITHIN = 30.0


class Rollback(Exception):
    pass


@pytest.fixture
def broker(tmp_path, settings, monkeypatch, databases):
    """A Valkey that may be stopped and started, as this process's broker."""
    server = embedded.Valkey(tmp_path)
    server.start()
    settings.REDIS_URL = server.url
    settings.CELERY_BROKER_URL = server.url.replace("unix://", "redis+socket://", 1)
    monkeypatch.setattr(queue, "sender", queue.make_sender())
    monkeypatch.setattr(queue, "CIRCUIT", circuit.Circuit(circuit._ping, probe_s=0.1))
    yield server
    server.stop()


@pytest.fixture
def worker(broker, quick, tmp_path):
    """A real worker for the training queue, with the stand-in as training command."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_address(),
        "REDIS_URL": broker.url,
        "PARLEY_HOME": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "tests.worker.stand_in_settings",
    }
    command = [sys.executable, "-m", "celery", "-A", "worker.app", "worker", "--queues", "train-cpu"]
    command += ["--pool", "threads", "--concurrency", "2", "--loglevel", "error", "--without-gossip"]
    process = subprocess.Popen([*command, "--without-mingle"], cwd=ROOT, env=environment, start_new_session=True)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def state(run):
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def hinted(run):
    """Whether the run has ended; the clock's step repeats hints until then."""
    attempts.repeat_hints()
    return state(run) == "succeeded"


def test_ten_outages_lose_no_run_and_workers_consume_again_within_thirty_seconds(broker, worker, make_run):
    first = make_run(steps=2)
    wait_until(lambda: hinted(first), seconds=60, pause=0.5)
    runs = []
    for _ in range(OUTAGES):
        broker.stop()
        assert health.broker().ok is False
        runs.append(make_run(steps=2))
        assert queue.publish(queue.SUPERVISE, runs[-1].pk) is False
        time.sleep(LASTS)
        broker.start()
        back = time.monotonic()
        wait_until(lambda: hinted(runs[-1]), seconds=AGAIN_WITHIN, pause=0.5)
        assert time.monotonic() - back < AGAIN_WITHIN
        assert health.broker().ok
    assert [run.attempts.count() for run in runs] == [1] * OUTAGES
    assert worker.poll() is None
    assert not any(processes_of(run) for run in runs)


def served():
    """The queues that the worker says it serves."""
    return Heartbeat.objects.get(kind="worker").detail["queues"]


def test_health_reports_a_worker_that_has_not_reached_the_broker_again(broker, worker):
    wait_until(lambda: Heartbeat.objects.filter(kind="worker").exists(), seconds=60)
    assert wait_until(served) == ["train-cpu"]
    broker.stop()
    wait_until(lambda: served() == [], pause=0.5)
    broker.start()
    assert "nobody serves train-cpu" in "".join(health.check()["problems"])
    wait_until(lambda: served() == ["train-cpu"], seconds=AGAIN_WITHIN, pause=0.5)
    assert "nobody serves train-cpu" not in "".join(health.check()["problems"])


def test_a_worker_tries_again_every_few_seconds_however_long_the_broker_is_away(settings, monkeypatch):
    """Time is kombu's sleeps; kombu's own pauses grow to 30 s, which alone would use up what a worker has."""
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
    slept, pauses = [], []
    monkeypatch.setattr(functional, "sleep", slept.append)

    def tried(error, pause):
        pauses.append(pause)
        if sum(pauses) > 60:
            raise Rollback

    with pytest.raises(Rollback):
        queue.make_celery().connection_for_read().ensure_connection(tried, None)
    assert sum(slept) > 50
    assert pauses[0] == 2
    assert max(pauses) == queue.RETRY_SECONDS < AGAIN_WITHIN / 3


def test_a_run_continues_without_the_broker(broker, worker, make_run):
    run = make_run(steps=40, seconds=0.1)
    wait_until(lambda: attempts.repeat_hints() == 0, seconds=60, pause=0.5)
    wait_until(run.metrics.exists, seconds=30)
    broker.stop()
    wait_until(lambda: state(run) == "succeeded", seconds=60)
    assert list(run.metrics.order_by("step").values_list("step", flat=True)) == list(range(1, 41))
    assert run.attempts.count() == 1


KILLED = """
import json, os, signal
import django
django.setup()
from training.config import RunConfig
from webapp.accounts.models import User
from webapp.core import queue
from webapp.runs import services
queue.publish = lambda *args, **options: os.kill(os.getpid(), signal.SIGKILL)
config = RunConfig(name=json.dumps({"steps": 2}), model={"base": "tiny"})
services.create_run(owner=User.objects.get(role="researcher"), config=config)
"""


def test_a_committed_start_runs_once_though_the_site_dies_before_the_hint(broker, worker, researcher):
    """Between commit and hint the process that starts the run is killed: the row alone is there."""
    environment = os.environ | {"DATABASE_URL": database_address(), "REDIS_URL": broker.url}
    died = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    run = Run.objects.get()
    time.sleep(1.0)
    assert (state(run), run.attempts.count()) == ("queued", 0)
    wait_until(lambda: hinted(run), seconds=60, pause=0.5)
    for _ in range(3):
        attempts.repeat_hints()
        queue.publish(queue.SUPERVISE, run.pk)
    time.sleep(1.0)
    assert (state(run), run.attempts.count()) == ("succeeded", 1)


def test_a_rolled_back_start_never_runs(broker, worker, make_run):
    made = []

    def start():
        with transaction.atomic():
            made.append(make_run(steps=2))
            raise Rollback

    with pytest.raises(Rollback):
        start()
    (run,) = made
    later = make_run(steps=2)
    wait_until(lambda: hinted(later), seconds=60, pause=0.5)
    queue.publish(queue.SUPERVISE, run.pk)
    time.sleep(1.0)
    assert not Run.objects.filter(pk=run.pk).exists()
    assert not (django_settings.RUNS_ROOT / str(run.pk)).exists()
    services.stop_run(run=later)
    assert state(later) == "succeeded"
