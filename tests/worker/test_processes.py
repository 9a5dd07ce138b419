"""Processes that nobody supervises are killed; one that merely has an old id is not."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import psutil
import pytest
from django.conf import settings
from django.db.models.functions import Now

from webapp.core import children, pids
from webapp.runs.models import Attempt
from worker import lifecycle, processes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]

FAMILY = (
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    "print('up', flush=True); time.sleep(60)"
)


@pytest.fixture
def family():
    """A process with a child, in a group of its own."""
    process = subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    members = [process.pid, *(child.pid for child in psutil.Process(process.pid).children())]
    assert len(members) == 2
    yield process, members
    processes.kill_tree(process.pid, pids.start_time(process.pid) or 0.0)
    process.wait()


def alive(members):
    return [pid for pid in members if pids.start_time(pid) is not None]


def gone(members, seconds=5.0):
    deadline = time.monotonic() + seconds
    while alive(members) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive(members) == []


def test_a_process_is_interrupted_without_those_that_it_started(tmp_path):
    """A Ray that a run has started ends at a signal, and the run saves with its help."""
    child = processes.start([sys.executable, "-c", FAMILY], tmp_path / "log", dict(os.environ))
    try:
        while not (helpers := psutil.Process(child.pid).children()):
            time.sleep(0.05)
        assert os.getpgid(helpers[0].pid) == child.pid
        child.interrupt()
        assert child.process.wait(5) == -signal.SIGTERM
        child.interrupt()  # of one that has ended: nothing
        time.sleep(0.2)
        assert helpers[0].is_running()
    finally:
        child.kill()
    assert gone([helpers[0].pid])


def attempt_of(make_run, process, *, worker, state="running", lease=timedelta(seconds=-5), started=None):
    return Attempt.objects.create(
        run=make_run(),
        number=1,
        fence=1,
        state=state,
        worker=worker,
        host=settings.NODE_NAME,
        pid=process.pid,
        pid_started=started or pids.start_time(process.pid),
        lease_until=Now() + lease,
    )


DEAD = "here:1:1.00"


def test_a_process_whose_worker_is_gone_is_killed_with_its_children(make_run, family):
    process, members = family
    attempt_of(make_run, process, worker=DEAD, state="lapsed")
    assert processes.reap(lifecycle.is_alive) == 1
    assert gone(members)


def test_a_process_has_its_lease_to_save_and_leave(make_run, family):
    process, members = family
    attempt_of(make_run, process, worker=DEAD, lease=timedelta(seconds=60))
    assert processes.reap(lifecycle.is_alive) == 0
    assert alive(members) == members


def test_a_process_of_a_living_worker_is_left_alone(make_run, family):
    process, members = family
    attempt_of(make_run, process, worker=lifecycle.identity())
    assert processes.reap(lifecycle.is_alive) == 0
    assert alive(members) == members


def test_a_process_of_a_worker_that_was_started_anew_under_its_id_is_killed(make_run, family):
    """In a container a worker has the same name and process id after every start; only the start time differs."""
    process, members = family
    node, pid, started = lifecycle.identity().rsplit(":", 2)
    attempt_of(make_run, process, worker=f"{node}:{pid}:{float(started) - 100:.2f}", state="lapsed")
    assert processes.reap(lifecycle.is_alive) == 1
    assert gone(members)


def test_a_recycled_process_id_is_left_alone(make_run, family):
    process, members = family
    attempt_of(make_run, process, worker=DEAD, started=pids.start_time(process.pid) - 1000)
    assert processes.reap(lifecycle.is_alive) == 0
    assert not gone(members, seconds=0.5)
    assert alive(members) == members


def test_children_that_outlive_their_parent_are_killed_by_their_group(family):
    process, members = family
    started = pids.start_time(process.pid)
    process.kill()
    process.wait()
    processes.kill_tree(process.pid, started)
    assert gone(members)


def test_children_of_a_group_that_was_formed_after_a_restart_are_left_alone(family):
    """Ids begin again with every start of the machine or the container, so its leader was another process."""
    process, members = family
    process.kill()
    process.wait()
    processes.kill_tree(process.pid, psutil.Process(1).create_time() - 60)
    assert not gone(members[1:], seconds=0.5)
    processes.kill_tree(process.pid, time.time())


def test_a_process_whose_worker_is_gone_is_looked_for_once(make_run, family):
    process, members = family
    attempt = attempt_of(make_run, process, worker=DEAD, state="lapsed")
    process.kill()
    process.wait()
    assert processes.reap(lifecycle.is_alive) == 0
    assert gone(members)
    attempt.refresh_from_db()
    assert (attempt.pid, attempt.pid_started) == (process.pid, None)


@pytest.mark.parametrize("state, is_killed", [("ended", False), ("lapsed", True)])
def test_the_next_attempt_kills_only_what_did_not_end_properly(make_run, family, supervisor_of, state, is_killed):
    process, members = family
    attempt = attempt_of(make_run, process, worker=DEAD, state=state)
    supervisor_of(attempt.run)._clear_leftovers()
    assert gone(members, seconds=5.0 if is_killed else 0.5) == is_killed


def test_a_child_is_given_no_secret_but_by_name(monkeypatch):
    secret = (
        "DATABASE_URL",
        "REDIS_URL",
        "PARLEY_SECRET_KEY",
        "OTHER_API_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "HF_TOKEN",
        "PGPASSWORD",
        "Smtp_Password_File",
        "client_secret",
        "github_token",
    )
    plain = ("TOKENIZERS_PARALLELISM", "LAWS_OF_PLAY", "HF_TOKEN_COUNT", "CUDA_VISIBLE_DEVICES")
    for name in (*secret, *plain):
        monkeypatch.setenv(name, "x")
    environment = children.environment({}, {})
    assert [name for name in (*secret, *plain) if name in environment] == list(plain)
    named = children.environment({"OTHER_API_KEY": "key"}, {"HF_TOKEN": "token"})
    assert (named["OTHER_API_KEY"], named["HF_TOKEN"]) == ("key", "token")


def test_only_a_worker_that_serves_says_how_many_models(settings):
    from worker import lifecycle

    settings.SERVE_SLOTS, settings.NODE_NAME = 3, "left"
    assert lifecycle.about(["serve"]).items() >= {"serve_slots": 3, "node": "left"}.items()
    assert "serve_slots" not in lifecycle.about(["play"])


def test_the_last_line_is_the_last_that_is_not_empty():
    assert processes.last_line("loading\nno such file: x\n\n  \n") == "no such file: x"
    assert processes.last_line("\n") == processes.last_line("") == ""


def test_the_last_line_is_without_the_command_that_prints_it():
    assert processes.last_line("python -m training resume: cluster: too few cores") == "cluster: too few cores"
    assert processes.last_line("python -m training labels import: error: no file") == "error: no file"
    assert processes.last_line("python -m training export-metrics: no file") == "no file"


def test_a_lease_is_renewed_while_work_goes_on_in_a_thread():
    renewed, enough = [], threading.Event()

    def renew():
        renewed.append(threading.current_thread())
        if len(renewed) == 3:
            enough.set()

    def work():
        assert enough.wait(10)
        return threading.current_thread()

    assert processes.meanwhile(work, renew, 0.01) != threading.current_thread()
    assert {*renewed} == {threading.current_thread()}


def test_a_lost_lease_is_raised_once_the_work_has_ended():
    lost, ended = threading.Event(), []

    def renew():
        lost.set()
        raise RuntimeError("the lease is lost")

    def work():
        assert lost.wait(10)
        ended.append(True)

    with pytest.raises(RuntimeError, match="lease is lost"):
        processes.meanwhile(work, renew, 0.01)
    assert ended == [True]
