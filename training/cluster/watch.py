"""Watches the parts of Ray without which a driver cannot go on: its own raylet, and the head of the cluster.

When one of them has died, calls to Ray may wait without end. `check` raises instead, with a sentence that names it.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from training.errors import ProcessLost

log = logging.getLogger(__name__)
PAUSE_S = 0.5
"""Seconds between two looks at the processes of this machine."""
HEAD_PAUSE_S = 5.0
"""Seconds between two calls of the head of a joined cluster."""
HEAD_SILENCE_S = 30.0
"""How long the head may not be reached before it counts as dead."""


class Watch:
    """Looks after processes of this machine, by name, and after the `head` (HOST:PORT) if that is elsewhere."""

    def __init__(self, processes: Mapping[str, Any], head: str = "") -> None:
        self._processes, self._head = dict(processes), head
        self.lost = ""
        """What died; empty while everything lives."""
        self._over = threading.Event()
        threading.Thread(target=self._look, name="ray-watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer: what is being ended is no loss."""
        self._over.set()

    def _look(self) -> None:
        called = reached = time.monotonic()
        while not self._over.wait(PAUSE_S):
            for name, process in self._processes.items():
                if not _runs(process) and not self._over.is_set():
                    self._lose(f"{name} (process {process.pid} on {socket.gethostname()}) died")
                    return
            if self._head and time.monotonic() - called > HEAD_PAUSE_S:
                called = time.monotonic()
                if _answers(self._head):
                    reached = time.monotonic()
                elif called - reached > HEAD_SILENCE_S and not self._over.is_set():
                    self._lose(
                        f"the head of the Ray cluster at {self._head} has not answered for {called - reached:.0f} s"
                    )
                    return

    def _lose(self, why: str) -> None:
        log.error("%s: the run cannot go on with this Ray", why)
        for tell in _listeners:
            tell(why)
        self.lost = why


def _runs(process: Any) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError):
        socket.create_connection((host.strip("[]"), int(port)), timeout=HEAD_PAUSE_S).close()
        return True
    return False


def of_this_machine(*, own: bool) -> dict[str, Any]:
    """Return the raylet of this machine to which the driver is connected, and with a Ray of its `own` the GCS."""
    import psutil
    import ray

    node: Any = ray._private.worker._global_node  # noqa: SLF001 (Ray has no other way to its processes)
    if own:
        names = {"raylet": "the raylet of this run", "gcs_server": "the GCS of this run's Ray"}
        return {name: psutil.Process(node.all_processes[key][0].process.pid) for key, name in names.items()}
    mark = f"--raylet_socket_name={node.raylet_socket_name}"
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark in process.cmdline() and process.name().startswith("raylet"):
                found["the raylet of this node"] = process
    return found


_current: list[Watch] = []
"""That of the Ray to which this process is connected, if it is."""


_listeners: list[Callable[[str], None]] = []


def listen(tell: Callable[[str], None]) -> None:
    """Call `tell` with what died, from another thread: Ray may end this process at any moment after that."""
    _listeners[:] = [tell]


def begin(watch: Watch) -> None:
    """Let `lost` and `check` speak of this watch."""
    _current[:] = [watch]


def end() -> None:
    """Forget the watch: the process leaves its Ray."""
    for watch in _current:
        watch.stop()
    _current.clear()


def lost() -> str:
    """Return what of this process's Ray died, if anything."""
    return _current[0].lost if _current else ""


def check() -> None:
    """Raise `ProcessLost` if the Ray of this process is dead in a part that the driver needs."""
    if why := lost():
        raise ProcessLost(why)
