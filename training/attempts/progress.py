"""The output and the control requests of a running process: heartbeat, metrics, events, episodes; stop and save.

The heartbeat (`status.json`) is written on progress, never by a timer, so its age is the time since the last progress.
`control/stop`, SIGINT, SIGTERM and the end of standard input request a stop. After the end of standard input the
process exits within `GRACE_S` seconds, saved or not, even while it still loads its models.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from training.errors import ParleyError
from training.rundir import AttemptDir
from training.store import append_line, append_member, write_json
from training.supervised import held_input

if TYPE_CHECKING:
    from pathlib import Path

    from training.records import Floats, ProcessStatus

T = TypeVar("T")
Phase = Literal["loading", "starting", "sampling", "scoring", "learning", "syncing", "saving", "evaluating", "finished"]
Result = Literal["succeeded", "stopped", "failed", "interrupted"]
"""`interrupted`: a process was lost; another attempt goes on from the last checkpoint."""
GRACE_S = 25.0
"""Seconds from the end of standard input to the exit of the process."""
BEAT_S = 0.5
"""Shortest time between two heartbeats of the same phase."""


class StopRequested(ParleyError):
    """The process was requested to stop; the unfinished step is dropped."""


class Progress:
    """One attempt's output files and control requests. Only `stop` may be called from other threads."""

    def __init__(self, attempt: AttemptDir, steps: int, *, step: int = 0) -> None:
        attempt.root.mkdir(parents=True, exist_ok=True)
        self.attempt, self.steps, self.step = attempt, steps, step
        self.reason = ""
        self._phase: Phase = "loading"
        self._since = time.time()
        self._facts: dict[str, Any] = {}
        self._beaten = 0.0
        self._stop = threading.Event()
        self._watching = False
        self.processes: Callable[[], Sequence[ProcessStatus]] | None = None
        """What the run's other processes do, if it has any: the heartbeat tells it."""
        self.warnings: Sequence[str] = ()
        """What is wrong with the nodes of those processes, although the run can go on: the heartbeat tells it, too."""
        self.check_processes: Callable[[], None] | None = None
        """Raises `ProcessLost` if one of them is gone without which the run cannot go on."""

    # --- output ---

    def phase(self, phase: Phase, **facts: Any) -> None:
        """Begin a phase; the heartbeat has `facts` until the next phase."""
        self._phase, self._facts, self._since = phase, facts, time.time()
        self._write()

    def beat(self, **facts: Any) -> None:
        """Report progress inside the phase, such as `done=3, of=16`."""
        self._facts |= facts
        if time.monotonic() - self._beaten >= BEAT_S:
            self._write()

    def finish(self, result: Result, why: str = "") -> None:
        """Write the last heartbeat and event."""
        self.phase("finished", result=result, why=why)
        self.event("finished", result=result, why=why, step=self.step)

    def _write(self) -> None:
        self._beaten = time.monotonic()
        status: dict[str, Any] = {
            "phase": self._phase,
            "step": self.step,
            "steps": self.steps,
            "at": time.time(),
            "since": self._since,
            "pid": os.getpid(),
        }
        if self.processes is not None:
            status["processes"] = [each.to_dict() for each in self.processes()]
            status["warnings"] = list(self.warnings)
        write_json(self.attempt.status, status | self._facts)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Append the step's metrics as one line; values that are not finite are left out and logged as a warning."""
        good = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        if bad := sorted(set(values) - set(good)):
            self.event("warning", step=step, why=f"not finite: {', '.join(bad)}")
        append_line(self.attempt.metrics, {"step": step, "at": time.time(), **good})

    def event(self, kind: str, **data: Any) -> None:
        """Append an event."""
        append_line(self.attempt.events, {"at": time.time(), "kind": kind, **data})

    def episode(
        self, step: int, number: int, record: Mapping[str, Any], summary: Mapping[str, Any], file: Path | None = None
    ) -> None:
        """Append an episode with its credit to the step's file, or to another `file`, and an entry to the index."""
        file = file or self.attempt.episodes(step)
        offset, length = append_member(file, record)
        line = {"step": step, "episode": number, "file": file.name, "offset": offset, "length": length}
        append_line(self.attempt.index, {**line, "summary": dict(summary)})

    # --- control requests ---

    def stop(self, reason: str) -> None:
        """Request this process to stop; may be called from any thread and more than once."""
        self.reason = self.reason or reason
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """Whether a stop was requested."""
        if not self._stop.is_set() and self.attempt.asked("stop"):
            self.stop("asked by control/stop")
        return self._stop.is_set()

    def check(self) -> None:
        """Raise `StopRequested` if a stop was requested."""
        if self.stopping:
            raise StopRequested(self.reason)

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, or cancel it and raise `StopRequested` once a stop is requested.

        Raises what `check_processes` does, too: `work` may need none of them, or wait for one in vain.
        """
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=0.2)
                if not task.done():
                    self.check()
                    if self.check_processes is not None:
                        self.check_processes()
        except (ParleyError, asyncio.CancelledError):  # nothing goes on that nobody awaits
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        return task.result()

    def take_save(self) -> bool:
        """Return whether a save was requested since the last call; delete the request."""
        if not self.attempt.asked("save"):
            return False
        (self.attempt.root / "control" / "save").unlink(missing_ok=True)
        return True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Turn signals and the end of standard input into requests to stop while the block runs.

        A second signal has its default effect.
        """
        old = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        self.watch_input()
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
        self.stop(f"signal {signal.Signals(number).name}")

    def watch_input(self) -> None:
        """Turn the end of a supervisor's standard input into a request to stop, until the process ends."""
        descriptor = held_input()
        if descriptor is not None and not self._watching:
            self._watching = True
            threading.Thread(target=self._until_end, args=(descriptor,), name="stdin", daemon=True).start()

    def _until_end(self, descriptor: int) -> None:
        while os.read(descriptor, 4096):
            pass
        self.stop("the supervisor closed standard input")
        time.sleep(GRACE_S)
        os._exit(1)


@contextmanager
def logging_to(progress: Progress) -> Iterator[None]:
    """Write what `training` logs to the attempt's `log.txt`, one line per message, while the block runs.

    If standard error is that file already, no second handler is added.
    """
    already_logged = False
    with suppress(OSError, ValueError):
        already_logged = os.path.samestat(os.fstat(sys.stderr.fileno()), progress.attempt.log.stat())
    if already_logged:
        yield
        return
    handler = logging.FileHandler(progress.attempt.log, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("training")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        with suppress(OSError):  # what is left to write may not fit on the disk
            handler.close()


def rounded(values: Floats, digits: int = 5) -> list[float]:
    """Return the values rounded to `digits`; values that are not finite become 0."""
    return [round(float(value), digits) if math.isfinite(value) else 0.0 for value in values]
