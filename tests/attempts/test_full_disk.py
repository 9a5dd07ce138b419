"""A disk that fills while a checkpoint is saved: the attempt fails with a sentence that says so."""

import asyncio
import os
import subprocess
from concurrent.futures import Future

import pytest

from training.attempts.attempt import run_attempt
from training.cluster.worker import Worker
from training.errors import OutsideError, name_full_disk
from training.rundir import RunDir
from training.store import atomic_directory, read_lines


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_named_and_the_last_checkpoint_is_kept(small_disk):
    run_dir = RunDir(small_disk / "run")

    def save(progress, step, size):
        progress.step = step
        with atomic_directory(progress.attempt.checkpoint(step)) as folder:
            (folder / "weights").write_bytes(bytes(size))

    def go(_, progress):
        save(progress, 1, 300_000)
        save(progress, 2, 3_000_000)
        return "succeeded", ""

    outcome = run_attempt(run_dir, None, lambda *_: None, go)
    assert (outcome["result"], outcome["exit"]) == ("failed", 1)
    assert outcome["why"].startswith(f"a disk of {os.uname().nodename} is full: ")
    assert outcome["why"].endswith(". Free some space and resume the run: its last checkpoint is kept")
    assert "No space left on device" in outcome["why"]
    step, folder = run_dir.latest_checkpoint()
    assert (step, (folder / "weights").stat().st_size) == (1, 300_000)
    assert [path.name for path in folder.parent.iterdir()] == ["step_000001"], "nothing of the second is left"


def test_the_end_of_an_attempt_is_told_although_nothing_more_can_be_written(small_disk):
    run_dir = RunDir(small_disk / "run")

    def go(_, progress):
        with (small_disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    outcome = run_attempt(run_dir, None, lambda *_: None, go)
    assert outcome["result"] == "failed"
    assert outcome["why"].startswith("a disk of ")
    assert next(event["kind"] for event, _ in read_lines(run_dir.attempt(1).events)) == "started"


def test_the_disk_of_another_host_is_named_by_the_process_there(tmp_path):
    """The driver repeats what a rank says, and does not put in its own host."""

    def go(_, progress):
        raise OutsideError(
            "learner rank 1 failed: a disk of node7 is full: OSError: [Errno 28] No space left on device"
        )

    why = run_attempt(RunDir(tmp_path / "run"), None, lambda *_: None, go)["why"]
    assert why.startswith("learner rank 1 failed: a disk of node7 is full: ")
    assert os.uname().nodename not in why.replace("node7", "")
    assert "Free some space" in why


class Idle(Worker):
    steps = 0


def test_a_process_of_a_run_names_its_host():
    process, full, outcome = Idle.__new__(Idle), OSError(28, "No space left on device"), Future()
    process._activities = []
    outcome.set_exception(full)
    answer = asyncio.run(process._outcome("saving", outcome))
    assert str(answer.error) == f"a disk of {os.uname().nodename} is full: OSError: {full}"
    assert name_full_disk(str(answer.error)) == str(answer.error), "once"
    assert name_full_disk("another reason") == "another reason"
