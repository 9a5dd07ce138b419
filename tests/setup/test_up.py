"""`make demo` for real, on databases of its own: one address, and nothing left after Ctrl-C or worse."""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests import installation

ROOT = Path(__file__).resolve().parents[2]
FIRST_SECONDS = 120.0
pytestmark = [pytest.mark.process, pytest.mark.slow]


class Running:
    """A `tools.up` in a session of its own, its output line by line, and every process it ever had."""

    def __init__(self, env, *arguments):
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tools.up", *arguments],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines, self.output = queue.Queue(), []
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()

    def until(self, text, seconds):
        deadline = time.monotonic() + seconds
        while not any(text in line for line in self.output):
            try:
                self.output.append(self.lines.get(timeout=max(0.1, deadline - time.monotonic())))
            except queue.Empty:
                pytest.fail(f"no {text!r} in {seconds:.0f} s:\n{''.join(self.output)}")
        return time.monotonic() - self.begun

    def family(self, home):
        """Every process there is now for this launcher."""
        return {self.process.pid: psutil.Process(self.process.pid)} | {
            process.pid: process
            for process in [*psutil.Process(self.process.pid).children(recursive=True), *processes_of(home)]
        }

    @property
    def address(self):
        (address,) = {match for line in self.output for match in re.findall(r"http://\S+", line)}
        return address


def processes_of(home):
    """Every process that says it works for this installation: its folder is in its environment or arguments.

    Some overwrite both with a title of their own (Celery does): `Running.family` knows those.
    """
    processes = []
    for process in psutil.process_iter():
        try:
            mine = str(home) in " ".join([*process.cmdline(), process.environ().get("PARLEY_HOME", "")])
            if mine and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def left(family, home, seconds=30.0):
    """Which of these processes, or of the installation's, are still there after a while."""
    deadline = time.monotonic() + seconds
    while True:
        remaining = [process for process in [*family.values(), *processes_of(home)] if alive(process)]
        if not remaining or time.monotonic() > deadline:
            return remaining
        time.sleep(0.1)


@pytest.fixture(scope="module")
def env():
    home = Path(tempfile.mkdtemp(prefix="parley-up-"))
    env = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL", "PORT"}}
    env |= {"PARLEY_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    (home / "models").symlink_to(ROOT / "var" / "models")  # what is prepared is not prepared again
    installation.begin(home)
    yield env
    for process in processes_of(home):
        process.kill()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def up(env):
    started = []

    def start(*arguments):
        started.append(Running(env, *arguments))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGINT)
            running.process.wait(60)


def test_a_demo_prints_one_address_and_ctrl_c_leaves_nothing(env, up):
    home = env["PARLEY_HOME"]
    first = up("--demo")
    first.until("Ctrl-C stops everything", FIRST_SECONDS)
    with urllib.request.urlopen(first.address, timeout=10) as page:
        assert page.status == 200
    assert first.address.startswith("http://127.0.0.1:")
    family = first.family(home)
    assert len(family) >= 11, "launcher, manager, two databases and their keeper, web, clock, four workers"

    again = up()
    again.until("already running here", 30)
    assert again.process.wait(30) == 1

    os.killpg(first.process.pid, signal.SIGINT)
    time.sleep(0.5)
    os.killpg(first.process.pid, signal.SIGINT)  # an impatient second one changes nothing
    assert first.process.wait(60) == 0
    assert left(family, home) == []

    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it starts in the background
    second = up()
    signal.signal(signal.SIGINT, heard)
    second.until("Ctrl-C stops everything", FIRST_SECONDS)
    family = second.family(home)
    second.process.send_signal(signal.SIGTERM)
    assert second.process.wait(60) == 0
    assert left(family, home) == []


def test_a_launcher_that_is_killed_takes_everything_with_it(env, up):
    running = up()
    running.until("Ctrl-C stops everything", FIRST_SECONDS)
    family = running.family(env["PARLEY_HOME"])
    running.process.kill()
    running.process.wait()
    assert left(family, env["PARLEY_HOME"], 60) == []


def test_a_database_without_tables_is_reported_in_one_line():
    home = Path(tempfile.mkdtemp(prefix="parley-up-"))
    env = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL", "PORT"}}
    running = Running(env | {"PARLEY_HOME": str(home), "PYTHONUNBUFFERED": "1"}, "--demo")
    try:
        assert running.process.wait(FIRST_SECONDS) == 1
        running.until("up:", 10)
        assert running.output == ["up: the database is not set up for this version: run `make setup`\n"]
        assert running.lines.empty()
        assert left({}, home) == []
    finally:
        running.process.kill()
        for process in processes_of(home):
            process.kill()
        shutil.rmtree(home, ignore_errors=True)
