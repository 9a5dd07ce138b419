"""Runs whose process is a stand-in, and workers in the test's own process or in one of their own."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.elsewhere import database_address
from training.config import RunConfig

COMMAND = [sys.executable, "-m", "tests.worker.fake_trainer"]


@pytest.fixture
def quick(settings, tmp_path):
    """Short leases, a run folder of the test's own, and the stand-in as training command."""
    settings.RUN_LEASE_SECONDS = 2.0
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.RUNS_ROOT = tmp_path / "files" / "runs"
    settings.RUN_COMMAND = COMMAND
    from worker import lifecycle

    lifecycle.leaving.clear()
    yield settings
    lifecycle.leaving.clear()


@pytest.fixture
def make_run(quick, researcher):
    """Makes a queued run: `make_run(steps=10, crash_at=3)`."""
    from webapp.runs import services

    def make(**wish):
        wish = {"steps": 10, **wish}
        config = RunConfig(name=json.dumps(wish), model={"base": "tiny"})
        return services.create_run(owner=researcher, config=config)

    return make


@pytest.fixture
def supervisor_of(quick):
    """Makes a supervisor that has claimed its run, and whose process has not started."""
    from webapp.runs import attempts
    from worker.kinds import Training
    from worker.supervise import Supervisor

    def make(run):
        attempt = attempts.claim(run_id=run.pk, worker="here:1:1.00", host=quick.NODE_NAME)
        supervisor = Supervisor(run, attempt, Training())
        supervisor.files = supervisor._new_folder()
        return supervisor

    return make


@pytest.fixture
def background():
    """Runs supervisors in threads of this process, as a worker's pool does."""
    from django.db import connections

    from worker.supervise import supervise

    threads = []

    def start(run):
        def work():
            try:
                supervise(run.pk)
            finally:
                connections.close_all()

        thread = threading.Thread(target=work)
        thread.start()
        threads.append(thread)
        return thread

    yield start
    for thread in threads:
        thread.join(40)
        assert not thread.is_alive()


def wait_until(true, seconds=20.0, pause=0.05):
    """Wait until `true()` is; fails with what it last returned."""
    deadline = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < deadline, f"still {value!r} after {seconds} s"
        time.sleep(pause)
    return value


def processes_of(run):
    """The process ids of a run's attempts that are alive."""
    from webapp.core import pids

    pairs = run.attempts.exclude(pid_started=None).values_list("pid", "pid_started")
    return [pid for pid, started in pairs if pids.same_process(pid, started)]


@pytest.fixture
def worker_process(quick, databases):
    """Starts a process that supervises one run and can be frozen or killed, as a worker's machine can."""

    started = []
    code = (
        "import sys, django; django.setup()\n"
        "from django.conf import settings\n"
        "settings.RUN_LEASE_SECONDS = 2.0\n"
        "settings.MEDIA_ROOT = __import__('pathlib').Path(sys.argv[2]).parent\n"
        "settings.RUNS_ROOT = __import__('pathlib').Path(sys.argv[2])\n"
        "settings.RUN_COMMAND = [sys.executable, '-m', 'tests.worker.fake_trainer']\n"
        "from worker.supervise import supervise\n"
        "supervise(int(sys.argv[1]))\n"
    )

    def start(run):
        environment = {**os.environ, "DATABASE_URL": database_address()}
        command = [sys.executable, "-c", code, str(run.pk), str(quick.RUNS_ROOT)]
        process = subprocess.Popen(command, env=environment, cwd=Path(__file__).resolve().parents[2])
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
