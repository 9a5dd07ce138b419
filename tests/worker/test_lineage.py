"""What an attempt takes over from earlier ones of its run, which may have run on other machines."""

import shutil
from types import SimpleNamespace

import pytest

from tests import bucket
from tests.worker.fake_trainer import save
from training import config as configs
from training.rundir import RunDir
from training.store import append_line
from webapp.core import files
from webapp.runs import attempts, batches, services
from webapp.runs.models import Checkpoint, Run
from worker import kinds
from worker.supervise import supervise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


@pytest.fixture
def earlier_attempt(quick):
    """Makes an attempt that began after `start_step`, wrote lines and checkpoints here, and died.

    The lines of the steps up to `stored` are in the database; the value of each line is the attempt's number.
    """

    def make(run, *, start_step=0, written=(), stored=0, saved=()):
        attempt = attempts.claim(run_id=run.pk, worker="here:1:1.00", host=quick.NODE_NAME)
        attempts.started(attempt=attempt, pid=2**22 + 1, pid_started=1.0, start_step=start_step, code_version="")
        folder = RunDir(quick.RUNS_ROOT / str(run.pk)).attempt(attempt.number)
        lines = [{"step": step, "at": 1.0, "reward": float(attempt.number)} for step in written]
        for line in lines:
            append_line(folder.metrics, line)
            if line["step"] == stored:
                offsets = {"metrics.jsonl": folder.metrics.stat().st_size}
        if stored:
            batch = batches.Batch(metrics=[line for line in lines if line["step"] <= stored], offsets=offsets)
            attempts.record(attempt=attempt, batch=batch)
        for step in saved:
            save(folder, step)
        attempts.give_back(attempt=attempt, exit_code=9, why="killed")
        return folder

    return make


def test_what_a_later_attempt_superseded_is_not_stored_again(make_run, earlier_attempt):
    """The second attempt, on another machine, began below what the first one wrote after its worker had died."""
    run = make_run(steps=16)
    earlier_attempt(run, written=range(1, 15), stored=12, saved=[10])
    elsewhere = earlier_attempt(run, start_step=10, written=range(11, 16), stored=15, saved=[15])
    elsewhere.metrics.unlink()
    supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "succeeded"
    writers = dict(run.metrics.values_list("step", "values__reward"))
    assert writers == {**dict.fromkeys(range(1, 11), 1.0), **dict.fromkeys(range(11, 16), 2.0), 16: 1.6}


def test_an_attempt_without_a_process_supersedes_nothing(make_run, earlier_attempt):
    run = make_run(steps=12)
    earlier_attempt(run, written=range(1, 11), stored=5, saved=[10])
    idle = attempts.claim(run_id=run.pk, worker="here:1:1.00", host="elsewhere")
    attempts.give_back(attempt=idle, exit_code=None, why="killed")
    supervise(run.pk)
    assert list(run.metrics.order_by("step").values_list("step", flat=True)) == list(range(1, 13))


@pytest.mark.parametrize("published", [[5], [5, 7]])
def test_a_checkpoint_that_a_later_attempt_superseded_is_not_resumed_from(
    make_run, earlier_attempt, settings, published
):
    """The second attempt ran elsewhere from step 5; it published step 7, or nothing."""
    settings.STORAGES = bucket.SETTINGS
    run = make_run(steps=12)
    here = earlier_attempt(run, saved=[5, 10])
    elsewhere = earlier_attempt(run, start_step=5)
    for step in published:
        save(elsewhere, step)
        name = f"checkpoints/run-{run.pk}-step-{step}"
        files.publish_folder(elsewhere.checkpoint(step), name)
        Checkpoint.objects.create(name=name, kind="full", run=run, step=step, base="tiny", path=name)
    shutil.rmtree(elsewhere.root)
    folder = RunDir(settings.RUNS_ROOT / str(run.pk))
    assert folder.latest_checkpoint() == (10, here.checkpoint(10))
    kinds.Training()._fetch_checkpoints(run, folder, 3, configs.parse(run.config))
    assert folder.latest_checkpoint() == (published[-1], elsewhere.checkpoint(published[-1]))


def test_an_opponent_that_a_later_attempt_superseded_is_fetched(make_run, earlier_attempt, settings):
    settings.STORAGES = bucket.SETTINGS
    run = make_run(steps=12)
    here = earlier_attempt(run, saved=[5, 10])
    elsewhere = earlier_attempt(run, start_step=5, saved=[10, 11])
    for step, source in [(5, here), (10, elsewhere), (11, elsewhere)]:
        name = f"checkpoints/run-{run.pk}-step-{step}"
        files.publish_folder(source.checkpoint(step), name)
        Checkpoint.objects.create(name=name, kind="full", run=run, step=step, base="tiny", path=name)
    shutil.rmtree(elsewhere.checkpoint(10))
    folder = RunDir(settings.RUNS_ROOT / str(run.pk))
    kinds.Training()._fetch_checkpoints(run, folder, 3, SimpleNamespace(past=lambda step: (5, 10)))
    assert folder.checkpoint_of(10) == elsewhere.checkpoint(10)
    assert folder.checkpoint_of(5) == here.checkpoint(5)


def test_a_checkpoint_that_was_deleted_stays_so_when_the_run_is_resumed(make_run):
    run = make_run(steps=12, crash_at=12)
    supervise(run.pk)
    services.delete_checkpoint(checkpoint=run.checkpoints.get(step=10))
    supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "succeeded"
    assert list(run.checkpoints.order_by("step").values_list("step", flat=True)) == [5, 12]


def test_a_checkpoint_is_uploaded_once(make_run, settings, monkeypatch):
    settings.STORAGES = bucket.SETTINGS
    uploads, publish = [], files.publish_folder
    monkeypatch.setattr(files, "publish_folder", lambda folder, name: (uploads.append(name), publish(folder, name)))
    run = make_run(steps=12, crash_at=11)
    supervise(run.pk)
    shutil.rmtree(settings.RUNS_ROOT)  # another machine, which fetches the checkpoint of step 10
    supervise(run.pk)
    assert uploads == [f"checkpoints/run-{run.pk}-step-{step}" for step in (5, 10, 12)]


def test_a_replaced_secret_stays_masked_in_the_log_of_an_earlier_attempt(make_run, monkeypatch):
    monkeypatch.setenv("JUDGE_API_KEY", "sk-canary-old")
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:1/v1=JUDGE_API_KEY")
    run = make_run(steps=8, crash_at=7)
    judge = {"address": "http://127.0.0.1:1/v1", "model": "m", "secret": "JUDGE_API_KEY"}
    Run.objects.filter(pk=run.pk).update(config={**run.config, "judge": judge})
    supervise(run.pk)
    monkeypatch.setenv("JUDGE_API_KEY", "sk-canary-new")
    supervise(run.pk)
    logs = run.attempts.order_by("number").values_list("log", flat=True)
    assert ["judge key: [JUDGE_API_KEY]" in log for log in logs] == [True, True]
    assert not [log for log in logs if "canary" in log]
