"""One process at a time works on a run: who is refused, who takes over, and what a holder that was frozen does."""

import errno
import itertools
import json
import os
import socket
import subprocess
import sys
import time

import pytest

from training.attempts import lock as module
from training.attempts.lock import hold
from training.errors import BadInput
from training.rundir import RunDir

HOLD = """
import sys, time
from pathlib import Path
from training.attempts.lock import hold
from training.rundir import RunDir
with hold(RunDir(Path(sys.argv[1])), int(sys.argv[2]), supervised=sys.argv[3] == "yes") as lock:
    lost = []
    lock.lost = lost.append
    print("held", flush=True)
    while not lost:
        time.sleep(0.05)
    print(lost[0], flush=True)
"""


@pytest.fixture
def holder(tmp_path):
    """Start another process that holds the lock of `tmp_path`."""
    started = []

    def start(attempt=1, *, supervised=False):
        command = [sys.executable, "-c", HOLD, str(tmp_path), str(attempt), "yes" if supervised else "no"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def files(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_a_live_holder_is_named_and_nothing_is_written(tmp_path, holder, monkeypatch):
    process = holder()
    os.utime(tmp_path / "lock.json", (1, 1))  # however long ago it was renewed: on this host the process counts
    before = files(tmp_path)
    with pytest.raises(BadInput) as refused, hold(RunDir(tmp_path)):
        pass
    assert f"process {process.pid} on {socket.gethostname()} (attempt 1)" in refused.value.why
    assert {path: content for path, (content, _) in files(tmp_path).items()} == {p: c for p, (c, _) in before.items()}


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path, holder):
    process = holder()
    process.kill()
    process.wait()
    with hold(RunDir(tmp_path)) as lock:
        assert json.loads((tmp_path / "lock.json").read_text())["pid"] == os.getpid()
        assert lock.holder.attempt == 1
    assert not (tmp_path / "lock.json").exists()


def test_a_killed_process_that_its_parent_has_not_reaped_is_dead(tmp_path, holder):
    process = holder()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie from here on
    with hold(RunDir(tmp_path)) as lock:
        assert lock.holder.pid == os.getpid()


def test_a_process_with_the_number_of_the_dead_holder_is_not_the_holder(tmp_path):
    with hold(RunDir(tmp_path)):
        data = json.loads((tmp_path / "lock.json").read_text())
    (tmp_path / "lock.json").write_text(json.dumps({**data, "started": data["started"] - 1000}))
    with hold(RunDir(tmp_path)) as lock:
        assert (lock.holder.pid, lock.holder.started) == (data["pid"], data["started"])


def test_a_clock_that_is_off_takes_no_lock_of_another_host(tmp_path, monkeypatch):
    """The lock was renewed just now; this machine's clock is a minute ahead of the one that dates files."""
    data = {"host": "elsewhere", "pid": 1, "started": 0.0, "attempt": 3, "supervised": False, "token": "x"}
    (tmp_path / "lock.json").write_text(json.dumps(data))
    present = time.time()
    monkeypatch.setattr(time, "time", lambda: present + 60)
    with pytest.raises(BadInput, match="process 1 on elsewhere"), hold(RunDir(tmp_path)):
        pass


@pytest.mark.parametrize("age, stale", [(5, False), (40, True)])
def test_a_holder_on_another_host_counts_for_as_long_as_it_renews(tmp_path, age, stale):
    data = {"host": "elsewhere", "pid": 1, "started": 0.0, "attempt": 3, "supervised": False, "token": "x"}
    path = tmp_path / "lock.json"
    path.write_text(json.dumps(data))
    os.utime(path, (time.time() - age,) * 2)
    if stale:
        with hold(RunDir(tmp_path)):
            pass
    else:
        with pytest.raises(BadInput, match="process 1 on elsewhere"), hold(RunDir(tmp_path)):
            pass
        assert json.loads(path.read_text()) == data


LOCK = {"host": socket.gethostname(), "pid": 1, "started": 0.0, "attempt": 1, "supervised": False, "token": "x"}


@pytest.mark.parametrize(
    "text",
    [
        '{"host": "some',
        "[" * 4096,
        "null",
        json.dumps({**LOCK, "pid": "1"}),
        json.dumps({**LOCK, "pid": 10**30}),
        json.dumps({**LOCK, "pid": -1}),
        json.dumps({**LOCK, "attempt": "\x1b[2J"}),
        json.dumps({**LOCK, "host": "elsewhere", "supervised": "no"}),
    ],
    ids=["torn", "deep", "null", "text", "huge", "negative", "attempt", "supervised"],
)
def test_a_file_that_is_no_lock_has_no_owner(tmp_path, text):
    (tmp_path / "lock.json").write_text(text)
    with hold(RunDir(tmp_path)) as lock:
        assert json.loads((tmp_path / "lock.json").read_text())["token"] == lock.holder.token


def test_a_lock_that_is_a_link_is_not_written_to(tmp_path):
    """A run directory may come from somebody else."""
    other = tmp_path / "diary"
    other.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    (run / "lock.json").symlink_to(other)
    with pytest.raises(BadInput, match="cannot be written to"), hold(RunDir(run)):
        pass
    assert other.read_text() == "mine"


def test_a_supervisors_later_attempt_displaces_its_earlier_one(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(module, "BEAT_S", 0.1)
    process = holder(1, supervised=True)
    with hold(RunDir(tmp_path), 2, supervised=True) as lock:
        assert "taken over by process" in process.stdout.readline()
        assert process.wait(10) == 0
        time.sleep(0.3)  # whoever was displaced does not delete the lock of its successor
        assert json.loads((tmp_path / "lock.json").read_text())["token"] == lock.holder.token


@pytest.mark.parametrize("first, second", [((1, False), (2, True)), ((2, True), (1, True)), ((1, True), (2, False))])
def test_nobody_else_displaces_a_live_holder(tmp_path, holder, first, second):
    holder(first[0], supervised=first[1])
    with (
        pytest.raises(BadInput, match="is working on this run"),
        hold(RunDir(tmp_path), second[0], supervised=second[1]),
    ):
        pass


def test_a_lock_is_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BEAT_S", 0.02)
    with hold(RunDir(tmp_path)):
        os.utime(tmp_path / "lock.json", (1, 1))
        deadline = time.monotonic() + 5
        while (tmp_path / "lock.json").stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert time.time() - (tmp_path / "lock.json").stat().st_mtime < 5


def test_a_renewal_that_fails_is_tried_again(tmp_path, monkeypatch):
    """A network's file system may be away for a moment; the lease of others must not run out for that."""
    failures, utime = [1, 2, 3], os.utime

    def away(*arguments):
        if failures:
            raise OSError(errno.EIO, f"away {failures.pop()}")
        utime(*arguments)

    monkeypatch.setattr(module, "BEAT_S", 0.02)
    path = tmp_path / "lock.json"
    with hold(RunDir(tmp_path)) as lock:
        lost = []
        lock.lost = lost.append
        utime(path, (1, 1))
        monkeypatch.setattr(os, "utime", away)
        deadline = time.monotonic() + 5
        while path.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 2
        assert not failures
        assert not lost


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_lock_that_was_deleted_is_not_made_again(tmp_path, gone):
    run = tmp_path / "run"
    with hold(RunDir(run)):
        (run / "lock.json").unlink()
        if gone == "folder":
            run.rmdir()
    assert not (run / "lock.json").exists()


def test_of_many_that_find_a_stale_lock_one_takes_it(tmp_path):
    stale = {"host": "elsewhere", "pid": 1, "started": 0.0, "attempt": 1, "supervised": False, "token": "x"}
    (tmp_path / "lock.json").write_text(json.dumps(stale))
    os.utime(tmp_path / "lock.json", (1, 1))
    code = (
        HOLD.partition("    lost =")[0] + "    print(time.time(), end=' ')\n    time.sleep(1)\n    print(time.time())\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), "1", "no"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    ended = [process.communicate(timeout=60) for process in [subprocess.Popen(command, **pipes) for _ in range(6)]]
    times = sorted(tuple(map(float, out.split())) for out, _ in ended if out)
    assert times
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(times))
    assert all("is working on this run" in errors for out, errors in ended if not out)
