"""A run whose database or storage is away, slow or busy: its process continues, and nothing is lost."""

import json
import shutil
import threading
import time

import pytest
from django.db import OperationalError

from tests import bucket
from tests.worker.conftest import wait_until
from training.rundir import RunDir
from webapp.core import files
from webapp.runs import attempts, services
from webapp.runs.models import Run
from worker import kinds, lifecycle, tail
from worker import supervise as supervise_module
from worker.supervise import supervise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


def steps(run):
    return list(run.metrics.order_by("step").values_list("step", flat=True))


def test_a_log_that_always_grows_holds_nothing_up(make_run, quick, monkeypatch):
    run = make_run(steps=12)
    log, record, in_a_row = RunDir(quick.RUNS_ROOT / str(run.pk)).attempt(1).log, attempts.record, []

    def recorded(**fields):
        in_a_row.append(len(in_a_row))
        assert len(in_a_row) < 20
        with log.open("a") as file:
            file.write("more\n")
        record(**fields)

    monkeypatch.setattr(attempts, "record", recorded)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, steps(run)) == ("succeeded", list(range(1, 13)))


def test_the_lease_is_renewed_while_much_is_stored(make_run, background, monkeypatch):
    """Of the attempt itself and of an earlier one: each takes longer than the lease of two seconds."""
    record = attempts.record

    def recorded(**fields):
        time.sleep(0.2)
        record(**fields)

    run = make_run(steps=14, crash_at=7)
    supervise(run.pk)
    run.attempts.update(offsets={})  # as if nothing had been stored
    monkeypatch.setattr(attempts, "record", recorded)
    monkeypatch.setattr(tail, "LINES", 1)
    thread = background(run)
    while thread.is_alive():
        assert attempts.lapse_overdue() == 0
        time.sleep(0.1)
    run.refresh_from_db()
    assert (run.state, run.attempts.count(), steps(run)) == ("succeeded", 2, list(range(1, 15)))


@pytest.mark.parametrize("write", ["started", "record"])
def test_an_outage_of_the_database_does_not_end_the_process(make_run, quick, monkeypatch, write):
    """It lasts longer than a process may be without progress, and ends before the process does."""
    quick.RUN_STALL_MINUTES = 1.5 / 60
    run, do = make_run(steps=40, seconds=0.1), getattr(attempts, write)
    begin = time.monotonic()

    def during_an_outage(**fields):
        if time.monotonic() - begin < 3.0:
            raise OperationalError("the connection is closed")
        return do(**fields)

    monkeypatch.setattr(attempts, write, during_an_outage)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempts.count(), steps(run)) == ("succeeded", 1, list(range(1, 41)))


@pytest.mark.parametrize("cause", ["stop", "shutdown"])
def test_a_stop_reaches_the_process_while_a_checkpoint_is_uploaded(make_run, background, quick, monkeypatch, cause):
    publish, uploading, may_end = files.publish_folder, threading.Event(), threading.Event()

    def slowly(*arguments):
        uploading.set()
        may_end.wait(20)
        publish(*arguments)

    monkeypatch.setattr(files, "publish_folder", slowly)
    run = make_run(steps=1000, seconds=0.05)
    thread = background(run)
    assert uploading.wait(20)
    try:
        services.stop_run(run=run) if cause == "stop" else lifecycle.leaving.set()
        process = RunDir(quick.RUNS_ROOT / str(run.pk)).attempt(1)
        wait_until(lambda: json.loads(process.status.read_text())["phase"] == "finished", seconds=10)
    finally:
        may_end.set()
    thread.join(30)
    run.refresh_from_db()
    assert run.state == ("stopped" if cause == "stop" else "queued")
    assert run.checkpoints.order_by("-step").first().step == run.step


@pytest.mark.parametrize("cause", ["stop", "shutdown"])
def test_a_stop_before_the_process_starts_leaves_it_unstarted(make_run, background, monkeypatch, cause):
    prepare, preparing = kinds.Training.prepare, threading.Event()

    def slowly(*arguments):
        preparing.set()
        time.sleep(2)
        return prepare(*arguments)

    monkeypatch.setattr(kinds.Training, "prepare", slowly)
    run = make_run(steps=1000, seconds=0.05)
    thread = background(run)
    assert preparing.wait(20)
    services.stop_run(run=run) if cause == "stop" else lifecycle.leaving.set()
    thread.join(30)
    run.refresh_from_db()
    assert run.state == ("stopped" if cause == "stop" else "queued")
    assert run.attempts.get().pid is None


@pytest.fixture
def broken_storage(settings, monkeypatch):
    """A bucket that refuses files whose names contain a word while the returned list is not empty."""
    settings.STORAGES = bucket.SETTINGS
    monkeypatch.setattr(supervise_module, "RETRY_SECONDS", 0.5)
    refused, save = ["checkpoints/"], bucket.Bucket._save

    def refusing(storage, name, content):
        if refused and refused[0] in name:
            raise ConnectionRefusedByBucket(name)
        return save(storage, name, content)

    monkeypatch.setattr(bucket.Bucket, "_save", refusing)
    return refused


class ConnectionRefusedByBucket(Exception):
    """What a client library raises is no `OSError`."""


def warnings(run):
    return [data["why"] for data in run.events.filter(kind="warning").values_list("data", flat=True)]


def test_a_storage_that_fails_for_a_while_does_not_end_the_process(make_run, background, broken_storage):
    run = make_run(steps=60, seconds=0.1)
    thread = background(run)
    wait_until(lambda: warnings(run))
    seen = run.attempts.get().status["step"]
    wait_until(lambda: run.attempts.get().status["step"] > seen + 20)
    assert not run.checkpoints.exists()
    broken_storage.clear()
    thread.join(30)
    run.refresh_from_db()
    assert (run.state, run.attempts.count(), steps(run)) == ("succeeded", 1, list(range(1, 61)))
    assert run.checkpoints.count() == 12
    (warning,) = warnings(run)
    assert "the output cannot be stored" in warning
    assert "ConnectionRefusedByBucket: checkpoints/" in warning


@pytest.mark.parametrize("refused", ["checkpoints/", "episodes/"])
def test_a_storage_that_stays_away_fails_the_run_which_can_be_resumed(make_run, quick, broken_storage, refused):
    quick.RUN_STALL_MINUTES = 1.5 / 60
    broken_storage[:] = [refused]
    run = make_run(steps=7)
    supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "a part of the output could not be stored" in run.error
    assert "ConnectionRefusedByBucket" in run.error
    broken_storage.clear()
    services.resume_run(run=run)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, steps(run)) == ("succeeded", list(range(1, 8)))
    assert list(run.checkpoints.order_by("step").values_list("step", flat=True)) == [5, 7]
    episode = run.episodes.get(step=7, number=1)
    assert files.read_member(episode.file, episode.offset, episode.length)["episode"] == {"scenario": "s1"}


def test_a_stop_does_not_wait_for_the_storage(make_run, background, broken_storage):
    run = make_run(steps=1000, seconds=0.05)
    background(run)
    wait_until(lambda: warnings(run))
    services.stop_run(run=run)
    wait_until(lambda: Run.objects.get(pk=run.pk).state == "failed", seconds=10)
    assert "ConnectionRefusedByBucket" in Run.objects.get(pk=run.pk).error


def test_a_worker_that_leaves_while_the_storage_is_away_queues_the_run(make_run, background, broken_storage):
    run = make_run(steps=7)
    thread = background(run)
    wait_until(lambda: warnings(run) and run.attempts.get().phase == "finished")
    lifecycle.leaving.set()
    thread.join(20)
    run.refresh_from_db()
    assert run.state == "queued"
    lifecycle.leaving.clear()
    broken_storage.clear()
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, steps(run)) == ("succeeded", list(range(1, 8)))
    assert list(run.checkpoints.order_by("step").values_list("step", flat=True)) == [5, 7]


@pytest.fixture
def on_another_machine(make_run, quick, settings, monkeypatch):
    """A run whose checkpoint of step 5 is in a bucket alone, which cannot be read while the returned list is empty."""
    settings.STORAGES = bucket.SETTINGS
    monkeypatch.setattr(supervise_module, "RETRY_SECONDS", 0.3)
    run = make_run(steps=12, crash_at=7)
    supervise(run.pk)
    shutil.rmtree(quick.RUNS_ROOT)
    back, opened = [], bucket.Bucket._open

    def refusing(storage, name, mode="rb"):
        if not back:
            raise ConnectionRefusedByBucket(name)
        return opened(storage, name, mode)

    monkeypatch.setattr(bucket.Bucket, "_open", refusing)
    return run, back


def test_a_storage_that_is_away_at_the_start_is_waited_for(on_another_machine, background):
    run, back = on_another_machine
    thread = background(run)
    wait_until(lambda: warnings(run))
    assert Run.objects.get(pk=run.pk).state == "starting"
    time.sleep(1)  # some more tries
    back.append(True)
    thread.join(30)
    run.refresh_from_db()
    assert (run.state, steps(run)) == ("succeeded", list(range(1, 13)))
    assert run.attempts.order_by("number").last().start_step == 5
    (warning,) = warnings(run)
    assert "the storage cannot be read" in warning
    assert "ConnectionRefusedByBucket" in warning


def test_a_storage_that_stays_away_at_the_start_fails_the_run_with_the_reason(on_another_machine, quick):
    run, _ = on_another_machine
    quick.RUN_STALL_MINUTES = 1 / 60
    supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "ConnectionRefusedByBucket" in run.error


@pytest.mark.parametrize("leaving, state", [(False, "stopped"), (True, "queued")])
def test_a_stop_at_the_start_does_not_wait_for_the_storage(on_another_machine, background, leaving, state):
    run, _ = on_another_machine
    thread = background(run)
    wait_until(lambda: warnings(run))
    lifecycle.leaving.set() if leaving else services.stop_run(run=run)
    thread.join(10)
    assert Run.objects.get(pk=run.pk).state == state


def test_a_command_that_cannot_be_started_fails_the_run_with_the_reason(make_run, quick):
    quick.RUN_COMMAND = ["/no/such/command"]
    run = make_run()
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", "[Errno 2] No such file or directory: '/no/such/command'")
