"""The processes of one kind as the driver sees them: started, health-checked, killed when they hang, and reported
when they die.

Ray must be running (`training.cluster.processes`). `training.cluster.worker` is the other side.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from training.cluster import watch
from training.cluster.nodes import one_line, without_addresses
from training.cluster.reservation import Bundles
from training.cluster.worker import Heartbeat, Started, Worker
from training.records import ProcessState, ProcessStatus

log = logging.getLogger(__name__)

PAUSE_S = 1.0
"""Most seconds between two heartbeats."""
MOST_CALLS = 10_000
"""Calls that a process takes at once."""
EXIT_CODE = re.compile(r"exit code (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """How processes of one kind run. Times are in seconds.

    `count`: how many. `bundles`: what each takes of Ray's resources, and where. `threads`: torch's threads of each; 0 =
    torch's choice. `cores`: the cores of each in order, none = any. `start_s`: how long one may take to start.
    `silence_s`: how long it may have work without making progress, or not answer at all. `lease_s`: after how long
    without its driver it ends.
    """

    count: int = 1
    bundles: Bundles = field(default_factory=Bundles)
    threads: int = 0
    cores: tuple[tuple[int, ...], ...] = ()
    start_s: float = 600.0
    silence_s: float = 600.0
    lease_s: float = 30.0


@dataclass(slots=True, eq=False)
class Process:
    """A Ray actor, where it runs, and what was last heard of it. `hung` says why it was ended, if it did hang."""

    number: int
    name: str
    actor: Any
    started: Started | None = None
    heartbeat: Heartbeat | None = None
    heard: float = field(default_factory=time.monotonic)
    progressed: float = field(default_factory=time.monotonic)
    hung: str = ""

    def __str__(self) -> str:
        started = self.started
        return f"{self.name} (process {started.pid} on {started.node})" if started else self.name

    @property
    def doing(self) -> str:
        """Return what the process does, as a gerund; empty if it waits for the driver."""
        if self.started is None:
            return "starting"
        return self.heartbeat.doing if self.heartbeat else ""

    def ready(self, started: Started) -> None:
        """Note that the process has started."""
        self.started = started
        if self.heartbeat:
            self.heartbeat = replace(self.heartbeat, doing="")  # what it was heard of last is that it started
        self.heard = self.progressed = time.monotonic()

    def note(self, heartbeat: Heartbeat) -> None:
        """Note a heartbeat."""
        before, self.heartbeat, self.heard = self.heartbeat, heartbeat, time.monotonic()
        if before is None or (heartbeat.steps, heartbeat.doing) != (before.steps, before.doing) or not heartbeat.doing:
            self.progressed = self.heard

    def status(
        self, name: str, state: ProcessState, idle: str, *, requests: int | None = None, restarts: int = 0
    ) -> ProcessStatus:
        """Return what the process does, from what was last heard of it; `idle` is what it does without work."""
        now, started, heartbeat = time.monotonic(), self.started, self.heartbeat
        return ProcessStatus(
            name=name,
            node=started.node if started else "",
            pid=started.pid if started else 0,
            device=started.device if started else "cpu",
            state=state,
            doing=self.doing or idle,
            requests=requests,
            waiting_s=round(max(0.0, now - self.progressed), 1) if self.doing else 0.0,
            silent_s=round(max(0.0, now - self.heard), 1),
            rss_bytes=heartbeat.rss_bytes if heartbeat else 0,
            gpu_bytes=heartbeat.gpu_bytes if heartbeat else 0,
            cores=round(heartbeat.cores, 2) if heartbeat else 0.0,
            gpu_busy=round(heartbeat.gpu_busy, 2) if heartbeat and heartbeat.gpu_busy is not None else None,
            restarts=restarts,
        )


class Supervisor:
    """Starts and watches processes; a thread of its own renews their leases.

    `ended(process, why)` is called once for each that dies or hangs, or cannot be reached because Ray itself is lost,
    perhaps from that thread. `noun` is what one is called. `together`: they wait for each other, so that only where
    none makes progress one hangs: the one that has done least.
    """

    def __init__(
        self,
        kind: type[Worker],
        noun: str,
        options: ProcessOptions,
        ended: Callable[[Process, str], None],
        *,
        together: bool = False,
    ) -> None:
        self._kind, self._noun, self.options, self._ended = kind, noun, options, ended
        self._together = together
        self._processes: list[Process] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watch-{noun.replace(' ', '-')}", daemon=True)
        self._thread.start()

    def launch(self, number: int) -> Process:
        """Start a process; it is for the caller to call `start` of its actor, and `ready`."""
        import ray

        options = self.options
        name = f"{self._noun} {number}"
        kind = ray.remote(self._kind).options(max_concurrency=MOST_CALLS, **options.bundles.options(number))
        cores = options.cores[number] if number < len(options.cores) else ()
        actor = kind.remote(name, options.lease_s, cores, options.threads, os.environ.get("PARLEY_HOME"))
        process = Process(number, name, actor)
        with self._lock:
            self._processes.append(process)
        return process

    def late(self, names: str) -> str:
        """Return that processes did not start in time, and what may be missing."""
        import ray

        needs = ""
        if gpus := self.options.bundles.gpus:
            free = ray.available_resources().get("GPU", 0.0)  # type: ignore[no-untyped-call]
            needs = f"; each needs {gpus:g} GPU, and {free:g} are free"
        return f"{names} did not start within {self.options.start_s:.0f} s{needs}"

    def lost(self, process: Process, error: Exception) -> None:
        """Note that Ray has raised an error of a process: it is gone."""
        doing = f" while {process.doing}" if process.doing else ""
        if self.end(process):
            log.debug("Ray says of %s: %s", process, one_line(error))
            how = how_it_ended(error) + self._next(process)
            log.warning("%s is gone: %s%s", process, how, _last_words(process.started))
            self._ended(process, f"{process} died{doing}")

    def _next(self, process: Process) -> str:
        """Return what follows the end of a process, for the log."""
        if self._together:
            return "; the others cannot continue without it"
        return "; it is started again" if process.started else ""

    def end(self, process: Process) -> bool:
        """End a process at once; return whether it was one of those that are watched."""
        with self._lock:
            watched = process in self._processes
            if watched:
                self._processes.remove(process)
        _kill(process.actor)
        return watched

    def close(self) -> None:
        """End all processes; may be called twice."""
        self._closed.set()
        with self._lock:
            ending, self._processes = self._processes, []
        for process in ending:
            _kill(process.actor)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10.0)

    def _watch(self) -> None:
        """Renew the leases, hear how far the processes are, and find those that are gone or hang."""
        import ray

        asked: dict[Any, Process] = {}
        while not self._closed.wait(min(PAUSE_S, self.options.lease_s / 5)):
            if why := watch.lost():
                self._lose_all(why)
                return
            with contextlib.suppress(ray.exceptions.RayError):  # Ray itself is gone: who waits for a process reports it
                asked |= self._ask(set(asked.values()))
                answered, _ = ray.wait([*asked], num_returns=len(asked), timeout=0.2) if asked else ([], [])
                for call in answered:
                    self._hear(asked.pop(call), call)
                self._end_hanging()

    def _lose_all(self, why: str) -> None:
        """Give up all processes: Ray neither answers nor ends them; they end with it, or at the end of their lease."""
        with self._lock:
            ending, self._processes = self._processes, []
        for process in ending:
            self._ended(process, why)

    def _ask(self, waiting: set[Process]) -> dict[Any, Process]:
        with self._lock:
            processes = [process for process in self._processes if process not in waiting]
        return {process.actor.heartbeat.remote(): process for process in processes}

    def _hear(self, process: Process, call: Any) -> None:
        import ray

        try:
            process.note(ray.get(call))
        except ray.exceptions.RayError as error:
            self.lost(process, error)

    def _end_hanging(self) -> None:
        """End those that do not answer, and those that have work and make no progress; a start has its own limit."""
        now, limit = time.monotonic(), self.options.silence_s
        with self._lock:
            ready = [process for process in self._processes if process.started]
        silent = [process for process in ready if now - process.heard > limit]
        at_work = [process for process in ready if process.doing]
        stalled = [process for process in at_work if now - process.progressed > limit and process not in silent]
        if self._together:
            least = min(at_work, key=lambda process: process.heartbeat.steps if process.heartbeat else 0, default=None)
            stalled = [least] if least in stalled and len(stalled) == len(at_work) else []
        for process in silent:
            doing = f", and was {process.doing}" if process.doing else ""
            self._end_hung(process, f"has not answered for {now - process.heard:.0f} s{doing}")
        for process in stalled:
            seconds = now - process.progressed
            self._end_hung(process, f"has been {process.doing} for {seconds:.0f} s without progress")

    def _end_hung(self, process: Process, why: str) -> None:
        process.hung = f"{process} {why}"
        log.error("%s: it is killed", process.hung)
        if self.end(process):
            _kill_stopped(process.started, self._kind)
            self._ended(process, process.hung)


def how_it_ended(error: Exception) -> str:
    """Return how a process ended, as far as Ray's error of it says.

    Of a process that did not end by itself Ray knows only that its connection closed, as a signal or a crash does.
    """
    import ray

    text = str(error)
    if isinstance(error, ray.exceptions.OutOfMemoryError) or "NODE_OUT_OF_MEMORY" in text:
        return "Ray ended it because its node was running out of memory"
    if isinstance(error, ray.exceptions.NodeDiedError) or "node has died" in text:
        return "its node died, or cannot be reached"
    if isinstance(error, ray.exceptions.ActorUnavailableError):
        return "neither it nor its node could be reached"
    if "receives a SIGTERM" in text:
        return "it received SIGTERM"
    if code := EXIT_CODE.search(text):
        return f"it exited with code {code[1]}"
    if "connection error" in text:
        return "it crashed, or was killed by a signal, as by SIGKILL where a machine runs out of memory"
    if getattr(error, "actor_init_failed", False):
        return f"it failed while it was made: {without_addresses(text.splitlines()[-1].strip())[:500]}"
    return f"Ray says: {one_line(error)}"


def _last_words(started: Started | None, lines: int = 40) -> str:
    """Return the last lines that a process of this machine wrote to its standard error; Ray keeps them in a file."""
    import ray

    node: Any = ray._private.worker._global_node  # noqa: SLF001 (Ray has no other way to its folder)
    if started is None or node is None or started.node != os.uname().nodename:
        return ""
    texts = []
    with contextlib.suppress(OSError):
        for path in Path(node.get_logs_dir_path()).glob(f"worker-*-{started.pid}.err"):
            texts += [line[:300] for line in path.read_text("utf-8", "replace").splitlines()[-lines:]]
    return "\n" + "\n".join(texts) if texts else ""


def _kill(actor: Any) -> None:
    import ray

    if watch.lost():  # the call might not return
        return
    with contextlib.suppress(ray.exceptions.RayError):  # Ray may be gone already
        ray.kill(actor, no_restart=True)


def _kill_stopped(started: Started | None, kind: type[Worker]) -> None:
    """End a process of this machine also if it is stopped, so that it cannot do what Ray asks."""
    import psutil

    if started is not None and started.node == os.uname().nodename:
        with contextlib.suppress(psutil.Error, OSError):
            if f"ray::{kind.__name__}" in " ".join(psutil.Process(started.pid).cmdline()):
                os.kill(started.pid, signal.SIGKILL)
