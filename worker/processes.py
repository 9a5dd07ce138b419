"""Child processes: started in their own group with a pipe to their input, and killed with their descendants.

`meanwhile` is for what a supervisor does beside, such as copying their files.
"""

import contextlib
import logging
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import psutil
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from webapp.core import pids
from webapp.runs.models import Attempt

logger = logging.getLogger(__name__)
T = TypeVar("T")
WRONG_INPUT = 2
"""The training command line's exit code for input that no second try can mend."""


@dataclass(frozen=True)
class Child:
    """A started process; closing the pipe to its input asks it to exit."""

    process: subprocess.Popen[bytes]
    started: float

    @property
    def pid(self) -> int:
        """The process's id, which is also its group's id."""
        return self.process.pid

    def ended(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self.process.poll()

    def let_go(self) -> None:
        """Close its input: it saves and exits by itself."""
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def interrupt(self) -> None:
        """Send SIGTERM to it alone: a Ray that it started is in its group, and needed until it has saved."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process with its descendants, and wait until it has ended."""
        self.let_go()
        kill_tree(self.pid, self.started)
        self.process.wait()


def start(command: list[str], log: Path, env: Mapping[str, str]) -> Child:
    """Start a command in a session of its own; its output is appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=settings.BASE_DIR,
            env=dict(env),
            start_new_session=True,
        )
    return Child(process, pids.start_time(process.pid) or 0.0)


def last_line(output: str) -> str:
    """The last line of a process's output that is not empty, without the command that prints it; empty if none is."""
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
    return re.sub(r"^python -m training [\w -]+: ", "", last)


def meanwhile(work: Callable[[], T], renew: Callable[[], None], every_s: float) -> T:
    """Run `work`, such as copying a large file, in a thread, and `renew` every so many seconds until it is done.

    Raises what either raises; what `renew` raises is raised once the thread has ended.
    """

    def closing() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(closing)
        while not wait([future], timeout=every_s).done:
            renew()
        return future.result()


def kill_tree(pid: int, started: float) -> bool:
    """Kill a process that is still the one that was started then, its group and its descendants.

    Returns whether it was alive. Of one that is dead already, the rest of its group is killed, unless another process
    has its id by now.
    """
    if not pids.same_process(pid, started):
        if _died_as_leader(pid, started):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        return False
    descendants: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        descendants = psutil.Process(pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for descendant in descendants:
        with contextlib.suppress(psutil.Error):
            descendant.kill()
    return True


def _died_as_leader(pid: int, started: float) -> bool:
    """Whether this id is free or a zombie's that was started then, so that a group of this id can only be its own.

    The system gives no new process an id that a group still has. But ids begin again when the machine or the container
    starts, so nothing is left of what was started earlier.
    """
    try:
        return abs(psutil.Process(pid).create_time() - started) <= 2.0
    except psutil.NoSuchProcess:
        return started >= _ids_begin()


def _ids_begin() -> float:
    """When ids began: at the start of the machine, or of the container's first process."""
    try:
        return max(psutil.boot_time(), psutil.Process(1).create_time())
    except psutil.Error:
        return psutil.boot_time()


def reap(is_alive: Callable[[str], bool]) -> int:
    """Kill this host's processes that nobody supervises any more; returns how many.

    Nobody does when the attempt's worker is gone. Its input has ended, so it saves and exits by itself within the
    lease; this is for one that hangs.
    """
    lapsed = Attempt.objects.filter(host=settings.NODE_NAME, pid_started__isnull=False, lease_until__lt=Now())
    recent = lapsed.filter(started_at__gt=Now() - timedelta(days=30)).exclude(state=Attempt.State.ENDED)
    killed = 0
    for attempt in recent.only("pid", "pid_started", "worker", "state", "lease_until"):
        if attempt.pid is None or attempt.pid_started is None or is_alive(attempt.worker):
            continue
        if kill_tree(attempt.pid, attempt.pid_started):
            logger.warning("killed process %s of attempt %s, whose worker is gone", attempt.pid, attempt.pk)
            killed += 1
        Attempt.objects.filter(pk=attempt.pk).update(pid_started=None)  # once: later the id may be another process's
    return killed
