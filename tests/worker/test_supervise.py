"""A run from its start to its end under a supervisor, with every way in which it can go wrong."""

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from unittest.mock import Mock

import psycopg
import pytest
from django.db import connection, transaction

from tests.elsewhere import begin, database_address
from tests.worker.conftest import processes_of, wait_until
from training.rundir import RunDir
from training.store import MANIFEST, verify_directory, write_json
from webapp.core import files
from webapp.runs import attempts, batches, services
from webapp.runs.models import Attempt, Run
from worker import kinds, lifecycle, publishing
from worker.supervise import KILL_SECONDS, MICRO_BATCH_SECONDS, STOP_SECONDS, supervise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


def state(run):
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def steps(run):
    return list(run.metrics.order_by("step").values_list("step", flat=True))


def test_a_run_is_seen_through(make_run, quick):
    run = make_run(steps=12)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.step, run.steps, run.error) == ("succeeded", 12, 12, "")
    assert steps(run) == list(range(1, 13))
    assert run.key_metric == pytest.approx(1.2)
    assert run.sparkline == [1, *[pytest.approx(n / 10) for n in range(1, 13)]]
    assert list(run.checkpoints.order_by("step").values_list("step", flat=True)) == [5, 10, 12]
    assert [c.parent and c.parent.step for c in run.checkpoints.order_by("step")] == [None, 5, 10]
    assert run.episodes.count() == 24
    attempt = run.attempts.get()
    assert (attempt.state, attempt.exit_code, attempt.phase) == ("ended", 0, "finished")
    assert processes_of(run) == []


def test_episodes_and_checkpoints_are_readable_through_the_storage(make_run, quick):
    run = make_run(steps=5)
    supervise(run.pk)
    episode = run.episodes.get(step=3, number=1)
    record = files.read_member(episode.file, episode.offset, episode.length)
    assert record["episode"] == {"scenario": "s1"}
    assert episode.outcome == "agreement"
    with gzip.open(quick.MEDIA_ROOT / episode.file, "rt") as whole:
        assert [json.loads(line)["episode"]["scenario"] for line in whole] == ["s0", "s1"]
    checkpoint = run.checkpoints.get()
    verify_directory(quick.MEDIA_ROOT / checkpoint.path)


def test_the_process_sees_no_secret_of_the_site(make_run, monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "other-secret")
    monkeypatch.setenv("PARLEY_SECRET_KEY", "site-secret")
    monkeypatch.setenv("PARLEY_MAIL", "smtps://site:mail-secret@mail.example")
    run = make_run(steps=1)
    supervise(run.pk)
    log = run.attempts.get().log
    seen = log.split("seen secrets: ")[1].splitlines()[0]
    secrets = {"DATABASE_URL", "REDIS_URL", "OTHER_API_KEY", "PARLEY_SECRET_KEY", "PARLEY_MAIL"}
    assert not secrets & set(json.loads(seen))
    assert "judge key: none" in log


def test_a_named_secret_reaches_the_process_and_is_blotted_out_of_its_log(make_run, monkeypatch):
    monkeypatch.setenv("JUDGE_API_KEY", "sk-canary-123456")
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:1/v1=JUDGE_API_KEY")
    run = make_run(steps=1)
    judge = {"address": "http://127.0.0.1:1/v1", "model": "m", "secret": "JUDGE_API_KEY"}
    Run.objects.filter(pk=run.pk).update(config={**run.config, "judge": judge})
    supervise(run.pk)
    log = run.attempts.get().log
    assert "judge key: [JUDGE_API_KEY]" in log
    assert "canary" not in log


LOST_RANK = "learner rank 1 died"
DEATHS = pytest.mark.parametrize(
    "at_step_8, times, why",
    [({"crash_at": 8}, {"crashes": 99}, "the process ended with code 9"), ({"lose_at": 8}, {"losses": 99}, LOST_RANK)],
    ids=["the driver died", "a learner rank died"],
)
"""How a stand-in ends early in step 8, once or each time, and the reason on record. It saves after step 5."""


@DEATHS
def test_an_attempt_that_died_is_followed_by_another_from_the_last_checkpoint(make_run, at_step_8, times, why):
    run = make_run(steps=12, **at_step_8)
    supervise(run.pk)
    assert state(run) == "queued"
    assert run.events.get(kind="interrupted").data["why"].startswith(why)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error) == ("succeeded", "")
    assert steps(run) == list(range(1, 13))
    assert [a.start_step for a in run.attempts.order_by("number")] == [0, 5]
    fences = dict(run.metrics.values_list("step", "fence"))
    assert fences == {n: 1 if n <= 5 else 2 for n in range(1, 13)}


@DEATHS
def test_three_deaths_in_a_row_without_a_new_checkpoint_fail_the_run(make_run, at_step_8, times, why):
    """Although each attempt makes steps."""
    run = make_run(steps=12, **at_step_8, **times)
    for _ in range(4):
        assert state(run) == "queued"
        supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert run.error.startswith(f"3 attempts in a row died without a new checkpoint. The last: {why}")
    assert [a.start_step for a in run.attempts.order_by("number")] == [0, 5, 5, 5]


def test_a_crash_during_the_last_head_to_head_has_it_played_again(make_run):
    evaluation = {"summary": {"difference": {}}, "verdict": "better"}
    run = make_run(steps=5, evaluation=evaluation, crash_at="evaluation")
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.result) == ("queued", None)
    assert run.attempts.get().status["phase"] == "evaluating"
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.result) == ("succeeded", evaluation)
    assert [a.start_step for a in run.attempts.order_by("number")] == [0, 5]
    assert set(run.metrics.values_list("fence", flat=True)) == {1}  # no step was repeated


def test_three_crashes_at_the_same_step_fail_the_run(make_run):
    run = make_run(steps=12, crash_at=1, crashes=99)
    for _ in range(3):
        assert state(run) == "queued"
        supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "3 attempts in a row died" in run.error
    assert "code 9" in run.error


def test_after_a_resume_by_hand_it_may_fail_three_times_again(make_run):
    run = make_run(steps=12, crash_at=1, crashes=3)
    for _ in range(3):
        supervise(run.pk)
    services.resume_run(run=run)
    supervise(run.pk)
    assert state(run) == "succeeded"


def test_wrong_input_fails_at_once_with_the_reason(make_run):
    run = make_run(wrong_input=True)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", "learn.lr: must be positive")


@pytest.mark.parametrize(
    "where, name", [(kinds.Training, "prepare"), (files, "publish_folder"), (RunDir, "latest_checkpoint")]
)
def test_the_lease_is_renewed_while_large_files_are_copied_or_hashed(make_run, background, monkeypatch, where, name):
    copy = getattr(where, name)

    def slowly(*arguments):
        time.sleep(3.5)
        return copy(*arguments)

    monkeypatch.setattr(where, name, slowly)
    run = make_run(steps=2)
    thread = background(run)
    while thread.is_alive():
        assert attempts.lapse_overdue() == 0
        time.sleep(0.2)
    assert (state(run), run.attempts.count()) == ("succeeded", 1)


@pytest.mark.parametrize("when, what", [("publish_folder", "first"), ("publish_file", "second")])
def test_a_checkpoint_that_is_pruned_before_it_is_published_stops_nothing(make_run, quick, monkeypatch, when, what):
    """The first one, before its files are listed; the second, while its first file is being linked."""
    publish, step = getattr(files, when), {"first": 5, "second": 10}[what]

    def after_pruning(path, name):
        if f"run-{run.pk}-step-{step}" in name:
            shutil.rmtree(path if path.is_dir() else path.parent, ignore_errors=True)
        publish(path, name)

    monkeypatch.setattr(files, when, after_pruning)
    run = make_run(steps=12)
    supervise(run.pk)
    assert (state(run), run.attempts.count()) == ("succeeded", 1)
    kept = [n for n in (5, 10, 12) if n != step]
    assert list(run.checkpoints.order_by("step").values_list("step", flat=True)) == kept
    published = sorted(path.name for path in (quick.MEDIA_ROOT / "checkpoints").iterdir())
    assert published == sorted(f"run-{run.pk}-step-{n}" for n in kept)


def test_a_file_that_is_missing_for_another_reason_is_not_passed_over(monkeypatch, tmp_path):
    (tmp_path / MANIFEST).write_text("{}")
    monkeypatch.setattr(files, "publish_folder", lambda folder, name: (tmp_path / "missing").read_text())
    with pytest.raises(FileNotFoundError):
        publishing.publish(batches.Batch(checkpoints=[{"source": tmp_path, "path": "p"}]), {})


def test_what_a_killed_save_left_behind_is_deleted_by_the_next_attempt(make_run, quick):
    run = make_run(steps=12, crash_at=8)
    supervise(run.pk)
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = RunDir(quick.RUNS_ROOT / str(run.pk)).attempt(1).root / "checkpoints" / f".step_000008.tmp-{gone.pid}"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    supervise(run.pk)
    assert (state(run), left.exists()) == ("succeeded", False)


def test_a_missing_secret_fails_before_a_process_starts(make_run, monkeypatch):
    monkeypatch.delenv("JUDGE_API_KEY", raising=False)
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:1/v1=JUDGE_API_KEY")
    run = make_run(steps=1)
    judge = {"address": "http://127.0.0.1:1/v1", "model": "m", "secret": "JUDGE_API_KEY"}
    Run.objects.filter(pk=run.pk).update(config={**run.config, "judge": judge})
    supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "JUDGE_API_KEY is not set" in run.error
    assert run.attempts.get().pid is None


def test_a_secret_of_another_address_never_reaches_a_process(make_run, monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "sk-canary-123456")
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:1/v1,https://other.example/v1=OTHER_API_KEY")
    run = make_run(steps=1)
    judge = {"address": "http://127.0.0.1:1/v1", "model": "m", "secret": "OTHER_API_KEY"}
    Run.objects.filter(pk=run.pk).update(config={**run.config, "judge": judge})
    supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert "judge.secret: OTHER_API_KEY may not be sent to 127.0.0.1" in run.error
    assert run.attempts.get().pid is None


def test_a_status_with_text_that_the_database_refuses_is_stored(make_run, supervisor_of):
    supervisor = supervisor_of(make_run())
    supervisor.files.status.write_text('{"phase": "finished", "why": "NUL \\u0000 and half a pair \\ud800", "at": 1.0}')
    assert supervisor._read_status()
    attempts.beat(attempt=supervisor.attempt, status=supervisor.status)
    supervisor.attempt.refresh_from_db()
    assert supervisor.attempt.status["why"] == "NUL \ufffd and half a pair ?"


def test_the_start_message_three_times_makes_one_attempt(make_run, background):
    run = make_run(steps=5, seconds=0.05)
    threads = [background(run) for _ in range(3)]
    for thread in threads:
        thread.join()
    assert run.attempts.count() == 1
    assert state(run) == "succeeded"


@pytest.mark.parametrize(
    "phase, wish",
    [
        ("starting", {"start_seconds": 2}),
        ("learning", {"seconds": 1.0}),
        ("saving", {"save_seconds": 2, "seconds": 0.05}),
    ],
)
def test_a_stop_ends_with_a_valid_checkpoint(make_run, background, phase, wish):
    run = make_run(steps=1000, **wish)
    background(run)
    wait_until(lambda: Attempt.objects.filter(run=run, phase=phase).exists())
    asked = time.monotonic()
    assert services.stop_run(run=run) == "stopping"
    assert services.stop_run(run=run) == "stopping"
    wait_until(lambda: state(run) == "stopped", seconds=30)
    assert time.monotonic() - asked < 30
    run.refresh_from_db()
    assert run.attempts.count() == 1
    last = run.checkpoints.order_by("-step").first()
    assert last.step == run.step
    verify_directory(files.local(last.path))
    assert processes_of(run) == []


def test_a_queued_run_stops_at_once_and_is_never_started(make_run):
    run = make_run()
    assert services.stop_run(run=run) == "stopped"
    supervise(run.pk)
    assert state(run) == "stopped"
    assert run.attempts.count() == 0


def test_a_process_that_does_not_listen_is_killed_when_it_was_asked_to_stop(make_run, background, monkeypatch):
    from worker import supervise as module

    monkeypatch.setattr(module, "STOP_SECONDS", 1.0)
    monkeypatch.setattr(module, "KILL_SECONDS", 2.0)
    monkeypatch.setattr(module, "MICRO_BATCH_SECONDS", 2.0)
    run = make_run(steps=10, hang_at=7)
    background(run)
    wait_until(lambda: len(steps(run)) == 6)
    services.stop_run(run=run)
    wait_until(lambda: state(run) == "stopped")
    assert run.checkpoints.get().step == 5


def test_a_request_to_stop_that_cannot_be_written_is_enforced_by_a_signal(make_run, supervisor_of):
    supervisor = supervisor_of(make_run())
    (supervisor.files.root / "control").write_text("a file where the folder belongs")
    supervisor._ask_to_stop("the worker was shut down")
    assert (supervisor.asked_at is not None, supervisor.reason) == (True, "the worker was shut down")


def test_a_process_is_interrupted_once(make_run, supervisor_of):
    """The first signal asks it to save; the second would have its default effect."""
    supervisor = supervisor_of(make_run())
    supervisor.child = Mock(ended=Mock(return_value=None))
    supervisor.asked_at = time.monotonic() - (STOP_SECONDS + 1)
    supervisor._enforce_stop()
    supervisor._enforce_stop()
    supervisor.child.interrupt.assert_called_once_with()


@pytest.mark.parametrize(
    "phase, silent, leaving, killed",
    [
        ("saving", 600, False, 0),
        ("saving", 600, True, 1),
        ("learning", MICRO_BATCH_SECONDS - 10, False, 0),
        ("learning", MICRO_BATCH_SECONDS + 10, False, 1),
        ("learning", 0, True, 1),
        ("syncing", MICRO_BATCH_SECONDS - 10, False, 0),
        ("syncing", MICRO_BATCH_SECONDS + 10, False, 1),
        ("evaluating", 0, False, 0),
        ("sampling", 0, False, 1),
    ],
)
def test_a_process_that_does_not_stop_is_killed_unless_it_has_to_save_and_the_worker_stays(
    make_run, supervisor_of, phase, silent, leaving, killed
):
    supervisor = supervisor_of(make_run())
    supervisor.child = Mock(ended=Mock(return_value=None))
    supervisor.asked_at = time.monotonic() - (KILL_SECONDS + 1)
    supervisor.progressed_at = time.monotonic() - silent
    supervisor.status = {"phase": phase}
    if leaving:
        lifecycle.leaving.set()
    supervisor._enforce_stop()
    assert supervisor.child.kill.call_count == killed


def test_a_process_that_makes_no_progress_is_killed_and_queued_again(make_run, quick):
    quick.RUN_STALL_MINUTES = 1.5 / 60
    run = make_run(steps=10, hang_at=7)
    supervise(run.pk)
    assert state(run) == "queued"
    assert "no progress" in run.events.get(kind="interrupted").data["why"]
    supervise(run.pk)
    assert state(run) == "succeeded"
    assert steps(run) == list(range(1, 11))


def test_a_worker_that_leaves_lets_the_process_save_and_queues_the_run(make_run, background):
    run = make_run(steps=1000, seconds=0.1)
    thread = background(run)
    wait_until(lambda: len(steps(run)) >= 2)
    lifecycle.leaving.set()
    thread.join(30)
    assert state(run) == "queued"
    saved = run.checkpoints.order_by("-step").first().step
    assert saved == run.metrics.order_by("-step").first().step > 1
    lifecycle.leaving.clear()
    second = background(run)
    wait_until(lambda: run.metrics.filter(fence=2).exists())
    assert run.attempts.get(number=2).start_step == saved
    services.stop_run(run=run)
    second.join(30)


def test_a_killed_worker_is_noticed_within_two_leases_and_leaves_no_process(make_run, worker_process):
    run = make_run(steps=1000, seconds=0.05)
    worker = worker_process(run)
    wait_until(lambda: len(steps(run)) >= 2)
    worker.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    wait_until(lambda: attempts.lapse_overdue() and state(run) == "queued", seconds=10)
    assert time.monotonic() - killed < 2 * 2.0
    wait_until(lambda: processes_of(run) == [], seconds=28)
    seen = run.metrics.count()
    supervised = make_it_end(run)
    assert supervised == "stopped"
    assert run.metrics.count() >= seen - 5
    assert steps(run) == list(range(1, len(steps(run)) + 1))


def make_it_end(run):
    import threading

    from django.db import connections

    def work():
        supervise(run.pk)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: run.metrics.filter(fence=2).exists())
    services.stop_run(run=run)
    thread.join(30)
    return state(run)


def test_a_frozen_holder_writes_nothing_once_another_has_begun(make_run, worker_process, background):
    run = make_run(steps=1000, seconds=0.05)
    worker = worker_process(run)
    wait_until(lambda: len(steps(run)) >= 2)
    os.kill(worker.pid, signal.SIGSTOP)
    first = run.attempts.get(number=1)
    wait_until(attempts.lapse_overdue, seconds=10)
    thread = background(run)
    wait_until(lambda: run.metrics.filter(fence=2).exists())
    os.kill(worker.pid, signal.SIGCONT)
    assert worker.wait(20) == 0
    first.refresh_from_db()
    assert first.state == "lapsed"
    start = run.attempts.get(number=2).start_step
    assert not run.metrics.filter(step__gt=start, fence=1).exists()
    assert len(processes_of(run)) == 1
    services.stop_run(run=run)
    thread.join(30)
    assert steps(run) == list(range(1, len(steps(run)) + 1))


@pytest.fixture
def frozen(quick):
    """Starts `frozen_writer`; returns its process once it is frozen inside a transaction."""
    started = []

    def start(what, pk):
        command = [sys.executable, "-m", "tests.worker.frozen_writer", what, str(pk)]
        environment = {**os.environ, "DATABASE_URL": database_address()}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "frozen\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_worker_that_freezes_inside_a_batch_keeps_no_locks_and_writes_nothing(make_run, frozen):
    run = make_run()
    first = attempts.claim(run_id=run.pk, worker="w:1:1", host="h")
    process = frozen("record", first.pk)
    wait_until(attempts.lapse_overdue, seconds=10)
    assert attempts.claim(run_id=run.pk, worker="w:2:2", host="h").fence == first.fence + 1
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=20)[0].splitlines() == ["error", "superseded"]
    assert run.metrics.count() == 0


def test_a_run_that_a_frozen_worker_is_claiming_is_claimed_by_another(make_run, frozen):
    run = make_run()
    process = frozen("claim", run.pk)
    assert attempts.claim(run_id=run.pk, worker="w:2:2", host="h") is None, "for now"
    wait_until(lambda: attempts.claim(run_id=run.pk, worker="w:2:2", host="h"), seconds=10)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=20)[0].splitlines() == ["error", "nothing"]
    assert [attempt.worker for attempt in run.attempts.all()] == ["w:2:2"]


def test_every_write_of_a_stale_attempt_is_refused(make_run):
    run = make_run()
    stale = attempts.claim(run_id=run.pk, worker="w:1:1", host="h")
    Attempt.objects.filter(pk=stale.pk).update(lease_until="2020-01-01T00:00:00Z")
    assert attempts.lapse_overdue() == 1
    fresh = attempts.claim(run_id=run.pk, worker="w:2:2", host="h")
    assert fresh.fence > stale.fence
    line = {"step": 1, "at": 1.0, "reward": 0.5}
    writes = [
        lambda: attempts.started(attempt=stale, pid=1, pid_started=1.0, start_step=0, code_version=""),
        lambda: attempts.beat(attempt=stale, status={}),
        lambda: attempts.record(attempt=stale, batch=batches.Batch(metrics=[line], offsets={"metrics.jsonl": 9})),
        lambda: attempts.finish(attempt=stale, state="succeeded", exit_code=0),
        lambda: attempts.give_back(attempt=stale, exit_code=0, why="late"),
    ]
    for write in writes:
        with pytest.raises(attempts.Superseded):
            write()
    assert run.metrics.count() == 0
    assert state(run) == "starting"


def test_a_lower_fence_never_overwrites_a_higher_one(make_run):
    run = make_run()
    attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="h")
    run.metrics.create(step=1, fence=attempt.fence + 1, at="2026-01-01T00:00:00Z", values={"reward": 7})
    line = {"step": 1, "at": 1.0, "reward": 0.5}
    attempts.record(attempt=attempt, batch=batches.Batch(metrics=[line], offsets={"metrics.jsonl": 9}))
    assert run.metrics.get().values == {"reward": 7}


def test_many_rows_are_written_without_a_pipeline_and_the_last_of_a_step_counts(make_run, monkeypatch):
    """In a pipeline the database waits for a frozen process for ever, and keeps its locks."""
    run = make_run()
    attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="h")
    lines = [{"step": step, "at": 1.0, "reward": reward} for step, reward in ((1, 0.1), (2, 0.2), (2, 0.3), (3, 0.4))]

    monkeypatch.setattr(psycopg.Pipeline, "__enter__", Mock(side_effect=AssertionError("a pipeline")))
    attempts.record(attempt=attempt, batch=batches.Batch(metrics=lines, offsets={"metrics.jsonl": 9}))
    stored = run.metrics.order_by("step").values_list("step", "values")
    assert list(stored) == [(1, {"reward": 0.1}), (2, {"reward": 0.3}), (3, {"reward": 0.4})]


def test_an_attempt_that_stores_a_step_again_overwrites_it_and_keeps_its_judgments(make_run):
    run = make_run()
    attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="h")

    def record(reward, outcome):
        summary = {"metrics": {f"end_{outcome}": 1}}
        episode = {"step": 1, "episode": 0, "file": "f", "offset": 0, "length": 1, "summary": summary}
        metrics = [{"step": 1, "at": 1.0, "reward": reward}]
        batch = batches.Batch(metrics=metrics, episodes=[episode], offsets={"metrics.jsonl": 9})
        attempts.record(attempt=attempt, batch=batch)
        return run.episodes.get()

    first, second = record(0.1, "limit"), record(0.2, "agreed")
    assert first.pk == second.pk
    assert (first.outcome, second.outcome) == ("limit", "agreed")
    assert run.metrics.get().values == {"reward": 0.2}
    with transaction.atomic(), connection.cursor() as cursor:  # as a judgment of the episode locks it
        cursor.execute("SELECT 1 FROM runs_playedepisode WHERE id = %s FOR KEY SHARE", [first.pk])
        assert begin(lambda: record(0.3, "limit")).result(timeout=10).outcome == "limit"


def test_output_that_the_database_refuses_is_a_failure_of_the_storage(supervisor_of, make_run):
    """It is reported and, unlike a database that is away, not waited for until the lease is lost."""
    supervisor = supervisor_of(make_run())
    supervisor.secrets, supervisor.start_step = {}, 0
    supervisor.sources = supervisor._sources()
    supervisor.files.metrics.write_text('{"step":-1,"at":1.0,"reward":0.5}\n')
    assert not supervisor._try(supervisor._store_next)
    assert "runs_metric" in supervisor.storage_error
    assert "cannot be stored" in supervisor._warning


def test_a_full_disk_is_named_with_its_host(supervisor_of, make_run):
    supervisor = supervisor_of(make_run())

    def full():
        raise OSError(28, "No space left on device")

    assert not supervisor._try(full)
    assert supervisor.storage_error.startswith(f"a disk of {socket.gethostname()} is full: ")
    assert supervisor.storage_error in supervisor._warning


def test_a_folder_that_the_site_did_not_make_is_never_an_attempt_of_the_site(make_run, quick):
    """Somebody runs `resume` on the folder by hand: what they write is neither read nor gone on from."""
    run = make_run(steps=12, crash_at=8)
    supervise(run.pk)
    folder = RunDir(quick.RUNS_ROOT / str(run.pk))
    played = run.episodes.get(step=5, number=0)
    stranger = folder.attempt(2)
    shutil.copytree(folder.attempt(1).checkpoint(5), stranger.checkpoint(2))
    stranger.metrics.write_text('{"step": 3, "at": 1.0, "reward": 99.0}\n')
    before = {path: path.read_bytes() for path in stranger.root.rglob("*") if path.is_file()}
    assert folder.latest_checkpoint()[0] == 2, "without the site the newest folder counts"

    supervise(run.pk)
    assert state(run) == "succeeded"
    assert list(run.attempts.order_by("number").values_list("number", "start_step")) == [(1, 0), (3, 5)]
    assert steps(run) == list(range(1, 13))
    assert 99.0 not in [values["reward"] for values in run.metrics.values_list("values", flat=True)]
    assert run.episodes.get(step=5, number=0).pk == played.pk, "with its judgments"
    assert "made outside the site" in run.events.get(kind="warning").data["why"]
    assert {path: path.read_bytes() for path in before} == before
    assert folder.attempts() == [1, 3]
    assert folder.folders() == [1, 2, 3]


def test_a_configuration_that_another_run_left_in_the_folder_is_not_used(make_run, quick):
    """A database that was restored from a backup gives numbers of runs again whose folders are still there."""
    run = make_run(steps=4)
    folder = RunDir(quick.RUNS_ROOT / str(run.pk))
    write_json(folder.config, run.config | {"name": json.dumps({"steps": 2})})
    supervise(run.pk)
    assert state(run) == "succeeded"
    assert steps(run) == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["evaluation.json", "suite.json"])
def test_the_result_is_that_of_a_head_to_head_or_of_a_suite(make_run, supervisor_of, name):
    supervisor = supervisor_of(make_run())
    assert supervisor._evaluation() is None
    (supervisor.files.root / name).write_text('{"rows": [1]}')
    assert supervisor._evaluation() == {"rows": [1]}


def test_the_commit_is_unknown_where_git_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert kinds.code_version.__wrapped__() == ""
