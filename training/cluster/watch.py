"""Monitors the parts of Ray without which a driver cannot go on: its own raylet, and the head of the cluster.

When one of them has died, calls to Ray may wait without end. `check` raises instead, with a sentence that names it.
The state is that of the process, because it has one connection to Ray at a time.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from training.errors import OutsideError, ParleyError, ProcessLost, boundary

log = logging.getLogger(__name__)
PAUSE_S = 0.5
"""Seconds between two looks at the processes of this machine."""
HEAD_PAUSE_S = 5.0
"""Seconds between two calls of the head of a joined cluster, and how long it may take to answer one."""
HEAD_SILENCE_S = 30.0
"""How long the head may not be reached before it counts as dead."""


class Head(Protocol):
    """The head of a joined cluster; its text is what errors call it."""

    def left(self) -> str:
        """Ask whether this driver is still part of the cluster; return why not, or an empty text.

        `OutsideError`: the head did not answer.
        """


@dataclass(frozen=True, slots=True)
class RayHead:
    """The head of the cluster that this process has joined.

    `address` is its HOST:PORT and `name` what errors call it, `cluster_id` and `node_id` are Ray's ids of the cluster
    and of the node whose raylet the driver uses.
    """

    address: str
    name: str
    cluster_id: str
    node_id: str

    def __str__(self) -> str:
        return f"the head of the Ray cluster at {self.name}"

    def left(self) -> str:
        """See `Head`."""
        import ray
        from ray._raylet import InnerGcsClient, NodeID  # type: ignore[attr-defined]

        try:
            check_listening(self.address, HEAD_PAUSE_S)  # Ray itself would wait longer
            client = InnerGcsClient.standalone(self.address, None, int(HEAD_PAUSE_S * 1000))
            if client.cluster_id.hex() != self.cluster_id:
                return f"{self} was started again: it is another cluster now"
            [alive] = client.check_alive([NodeID.from_hex(self.node_id)], timeout=HEAD_PAUSE_S)
        except (OSError, ray.exceptions.RayError) as error:
            raise OutsideError(f"{type(error).__name__}: {error}") from error
        return "" if alive else f"{self} has given up this node ({socket.gethostname()})"


class ClusterMonitor:
    """Looks after processes of this machine, by name, and after the `head` if the cluster is a joined one."""

    def __init__(self, processes: Mapping[str, Any], head: Head | None = None) -> None:
        self._processes, self._head = dict(processes), head
        self.lost = ""
        """What died; empty while everything lives."""
        self._over = threading.Event()
        threading.Thread(target=self._run, name="ray-monitor", daemon=True).start()

    def stop(self) -> None:
        """Monitor no longer: what is being ended is no loss."""
        self._over.set()

    def _run(self) -> None:
        try:
            with boundary():
                why = self._until_lost()
        except ParleyError as error:
            why = f"Ray can no longer be monitored: {error}"
        if not self._over.is_set():
            self._lose(why)

    def _until_lost(self) -> str:
        """Return what died, once something has; an empty text at the end."""
        called = answered = time.monotonic()
        while not self._over.wait(PAUSE_S):
            for name, process in self._processes.items():
                if not _runs(process):
                    return f"{name} (process {process.pid} on {socket.gethostname()}) died"
            if self._head is None or time.monotonic() - called < HEAD_PAUSE_S:
                continue
            called = time.monotonic()
            try:
                why = self._head.left()
            except OutsideError as error:
                log.warning("%s does not answer: %s", self._head, error)
                if called - answered > HEAD_SILENCE_S:
                    return f"{self._head} has not answered for {called - answered:.0f} s"
            else:
                answered = called
                if why:
                    return why
        return ""

    def _lose(self, why: str) -> None:
        log.error("%s: the run cannot go on with this Ray", why)
        try:
            for callback in _listeners:
                callback(why)
        except OSError as error:  # on a full disk, for instance
            log.warning("that could not be recorded: %s", error)
        finally:
            self.lost = why


def _runs(process: Any) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def is_running(pid: int) -> bool:
    """Whether a process of this machine runs; one that has ended, and whose parent does not know it yet, does not."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return _runs(psutil.Process(pid))
    return False


def check_listening(address: str, timeout_s: float) -> None:
    """Raise `OSError` if nothing listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s).close()


def of_this_machine(*, own: bool) -> dict[str, Any]:
    """Return the raylet of this machine to which the driver is connected, and with a Ray of its `own` the GCS.

    The raylet of a joined cluster may be in another container, where its process is not seen: `RayHead` hears of its
    death.
    """
    import psutil
    import ray

    node: Any = ray._private.worker._global_node  # noqa: SLF001 (Ray has no other way to its processes)
    if own:
        names = {"raylet": "the raylet of this run", "gcs_server": "the GCS of this run's Ray"}
        return {name: psutil.Process(node.all_processes[key][0].process.pid) for key, name in names.items()}
    mark = f"--raylet_socket_name={node.raylet_socket_name}"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark in process.cmdline() and process.name().startswith("raylet"):
                return {"the raylet of this node": process}
    return {}


def head_of(address: str, name: str) -> RayHead:
    """Return the head of the cluster that this process has joined at an address."""
    import ray

    node: Any = ray._private.worker._global_node  # noqa: SLF001 (as above)
    node_id = ray.get_runtime_context().get_node_id()
    return RayHead(address, name, node.cluster_id.hex(), node_id)


_current: list[ClusterMonitor] = []
"""That of the Ray to which this process is connected, if it is."""


_listeners: list[Callable[[str], None]] = []


def listen(callback: Callable[[str], None]) -> None:
    """Call `callback` with what died, from another thread: Ray may end this process at any moment after that."""
    _listeners[:] = [callback]


def begin(monitor: ClusterMonitor) -> None:
    """Let `lost` and `check` speak of this monitor."""
    _current[:] = [monitor]


def end() -> None:
    """Forget the monitor: the process leaves its Ray."""
    for monitor in _current:
        monitor.stop()
    _current.clear()


def lost() -> str:
    """Return what of this process's Ray died, if anything."""
    return _current[0].lost if _current else ""


def check() -> None:
    """Raise `ProcessLost` if the Ray of this process is dead in a part that the driver needs."""
    if why := lost():
        raise ProcessLost(why)
