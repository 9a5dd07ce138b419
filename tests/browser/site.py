"""A whole installation for browser tests: databases, site, clock and workers as `make up` runs them.

It lives in a folder of its own under the temporary folder; only the tiny model is shared between test sessions. Fails
when something does not start, with what the launcher printed.
"""

import json
import os
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from tests import installation
from tools.up import stop_with_parent

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0
MODEL_SECONDS = 900.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """One running installation. `address` ends without a slash; `admin` is (name, password) of the demo user.

    Alerts may be posted below `/hooks/` at `hook_port` of this machine, where nobody listens unless a test does.
    """

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="parley-browser-"))
        (self.home / "models").symlink_to(ROOT / "var" / "models")  # what is prepared is not prepared again
        self.port, self.hook_port = free_port(), free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        left_out = {"DATABASE_URL", "REDIS_URL", "PARLEY_TEST_DATABASE", "PARLEY_TEST_SESSION"}
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        self.environment = {
            # one person does here in minutes what takes days
            "PARLEY_QUOTAS": "runs_per_hour=1000,open_tables=1000,tables_per_hour=10000",
            **kept,
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "PARLEY_HOME": str(self.home),
            "PORT": str(self.port),
            "WEBHOOK_ADDRESSES": f"http://127.0.0.1:{self.hook_port}/hooks/",
            "PARLEY_SECRET_KEY": "for-browser-tests-only-" + "k" * 30,
            "SERVE_ENGINE": "transformers",
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
        }
        self.sessions: dict[str, list[Any]] = {}
        """Cookies of people who have signed in, by name."""
        self._output: list[str] = []
        self._family: dict[int, psutil.Process] = {}
        self.process: subprocess.Popen[str] | None = None
        self._seeding: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start everything; returns once every part is alive."""
        installation.begin(self.home)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tools.up", "--demo"],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=stop_with_parent,  # noqa: PLW1509 (a test session that is killed leaves no site behind)
        )
        lines: queue.Queue[str] = queue.Queue()
        output = self.process.stdout
        assert output is not None
        threading.Thread(target=lambda: [lines.put(line) for line in output], daemon=True).start()
        deadline = time.monotonic() + START_SECONDS
        while "Ctrl-C stops everything" not in "".join(self._output[-2:]):
            try:
                self._output.append(lines.get(timeout=max(0.1, deadline - time.monotonic())))
            except queue.Empty:
                raise AssertionError("the site did not start:\n" + "".join(self._output)) from None
        (credentials,) = re.findall(r"Sign in as (\S+) with the password (\S+)\.", "".join(self._output))
        self.admin: tuple[str, str] = credentials
        self.family()

    def manage(self, *arguments: str) -> str:
        """Run a command of `manage.py` in this installation; returns what it prints."""
        return self.run([sys.executable, "manage.py", *arguments])

    def seed(self, what: str, *arguments: object) -> Any:
        """Store rows that would take a browser too long to make; returns what that function of `seed.py` does."""
        if self._seeding is None or self._seeding.poll() is not None:  # one for all: to start takes two seconds
            self._seeding = subprocess.Popen(
                [sys.executable, "-m", "tests.browser.seed"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        asked, answers = self._seeding.stdin, self._seeding.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps([what, *map(str, arguments)]) + "\n")
        asked.flush()
        ready, _, _ = select.select([answers], [], [], START_SECONDS)
        line = answers.readline() if ready else ""
        if not line:
            self._seeding.kill()  # or its late answer would be the next one's
            self._seeding.wait()
            raise AssertionError(f"{what} stored nothing: see the captured standard error")
        return json.loads(line)

    def prepare_tiny(self) -> None:
        """Make the tiny model, once for all test sessions of this user."""
        self.run([sys.executable, "-c", "from tests import tiny_model; tiny_model.prepare()"], timeout=MODEL_SECONDS)

    def run(self, command: list[str], timeout: float = START_SECONDS) -> str:
        """Run a command as a process of this installation; returns what it prints."""
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def family(self) -> dict[int, psutil.Process]:
        """Every process that this installation has had so far."""
        if self.process is not None and self.process.poll() is None:
            for process in psutil.Process(self.process.pid).children(recursive=True):
                self._family[process.pid] = process
        for process in psutil.process_iter():
            try:
                mine = str(self.home) in " ".join([*process.cmdline(), process.environ().get("PARLEY_HOME", "")])
            except psutil.Error:
                continue
            if mine and process.pid != os.getpid():
                self._family[process.pid] = process
        return self._family

    def stop(self) -> None:
        """Press Ctrl-C, wait, and make sure that no process is left; the folder goes too."""
        self.family()
        try:
            if self._seeding is not None:
                self._seeding.kill()  # between two questions it has nothing to do
                self._seeding.wait()
            if self.process is not None:
                self.process.send_signal(signal.SIGINT)
                self.process.wait(150)
            left = [process for process in self.family().values() if alive(process)]
            deadline = time.monotonic() + 20
            while left and time.monotonic() < deadline:
                time.sleep(0.1)
                left = [process for process in left if alive(process)]
            assert not left, f"left behind: {left}"
        finally:
            for process in self.family().values():
                if alive(process):
                    process.kill()
            shutil.rmtree(self.home, ignore_errors=True)


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
