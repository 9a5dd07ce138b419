"""What machines other than the site's still have of a run is deleted by their own workers."""

import os

import pytest

from tests.webapp.runs.making import make_checkpoint, make_run
from webapp.runs import services
from webapp.runs.local_files import delete_leftovers
from webapp.runs.models import Checkpoint, Run
from worker import lifecycle

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(tmp_path, settings):
    """A function that makes this process one on that machine; returns its folder of run directories."""

    def become(name):
        settings.RUNS_ROOT = tmp_path / name / "runs"
        return settings.RUNS_ROOT

    settings.MEDIA_ROOT = tmp_path / "site"
    return become


def written(root, run):
    """A run directory with an input, a checkpoint and a game."""
    folder = root / str(run.pk)
    for name in ("inputs/one.jsonl", "attempts/0001/checkpoints/step_000005/model.safetensors", "config.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("said")
    return folder


def test_the_worker_that_trained_a_deleted_run_deletes_its_directory(
    researcher, machine, django_capture_on_commit_callbacks
):
    run, other = make_run(researcher), make_run(researcher)
    folders = [written(machine(name), each) for name in ("worker", "site") for each in (run, other)]
    with django_capture_on_commit_callbacks(execute=True):
        services.delete_run(run=run)
    assert [folder.exists() for folder in folders] == [True, True, False, True]
    machine("worker")
    lifecycle.keep_house()
    assert [folder.exists() for folder in folders] == [False, True, False, True]


def test_the_directories_of_servers_go_with_their_checkpoint(researcher, machine, django_capture_on_commit_callbacks):
    checkpoint = make_checkpoint(None, name="alone")
    server = make_run(researcher, kind="serve", start_checkpoint=checkpoint)
    folder = written(machine("worker"), server)
    machine("site")
    with django_capture_on_commit_callbacks(execute=True):
        services.delete_checkpoint(checkpoint=Checkpoint.objects.get(pk=checkpoint.pk))
    machine("worker")
    assert (delete_leftovers(), folder.exists()) == (1, False)


def test_the_copy_of_a_model_is_deleted_once_it_is_not_served_any_more(researcher, machine):
    """Each start fetches it from the bucket anew: a model that sleeps and wakes would fill the disk."""
    checkpoint = make_checkpoint(None, name="served")
    states = ("running", "stopped", "failed")
    servers = [make_run(researcher, kind="serve", start_checkpoint=checkpoint, state=state) for state in states]
    root = machine("worker")
    folders = [written(root, run) for run in (*servers, make_run(researcher, state="stopped"))]
    assert delete_leftovers() == 2
    assert [(folder / "inputs").exists() for folder in folders] == [True, False, False, True]
    assert all((folder / "config.json").exists() for folder in folders)


def test_a_directory_of_which_this_site_knows_nothing_stays(researcher, machine):
    """It may be another site's: a worker with a wrong DATABASE_URL deletes nothing."""
    run = make_run(researcher)
    folder = written(machine("worker"), run)
    foreign = folder.rename(folder.with_name(str(run.pk + 1000)))
    (foreign.parent / "notes").mkdir()
    assert delete_leftovers() == 0
    assert foreign.exists()


def test_what_cannot_be_deleted_of_a_directory_keeps_no_other(researcher, machine, monkeypatch):
    runs = [make_run(researcher) for _ in range(2)]
    folders = [written(machine("worker"), run) for run in runs]
    Run.objects.filter(pk__in=[run.pk for run in runs]).delete()
    stuck, unlink = folders[0] / "inputs", os.unlink

    def refuse(name, *arguments, **named):
        if name == "one.jsonl" and os.fstat(named["dir_fd"]).st_ino == stuck.stat().st_ino:
            raise PermissionError(13, "Permission denied", name)
        unlink(name, *arguments, **named)

    monkeypatch.setattr(os, "unlink", refuse)
    assert delete_leftovers() == 1
    assert [path.name for path in folders[0].iterdir()] == ["inputs"]
    assert not folders[1].exists()
    monkeypatch.undo()
    assert delete_leftovers() == 1
    assert not folders[0].exists()
