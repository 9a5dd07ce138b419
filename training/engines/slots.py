"""One engine of a pool through all processes that it has had."""

from __future__ import annotations

from dataclasses import dataclass

from training.cluster.supervisor import Process
from training.records import ProcessState, ProcessStatus


class Gone(Exception):
    """The process of an engine is gone; the text says which."""


@dataclass(slots=True)
class Slot:
    """An engine's place in the pool. `process` is None while none runs; `requests` are in flight."""

    index: int
    state: ProcessState = "starting"
    process: Process | None = None
    requests: int = 0
    restarts: int = 0

    def __str__(self) -> str:
        return f"engine {self.index}"

    def status(self) -> ProcessStatus:
        """Return what the engine does."""
        process = self.process  # read once: the pool's thread may replace it
        if process is None:
            idle = "starting" if self.state == "starting" else ""
            return ProcessStatus(
                name=str(self), state=self.state, doing=idle, requests=self.requests, restarts=self.restarts
            )
        waiting = "waiting for weights" if self.state == "loading" else "waiting for requests"
        idle = "sampling" if self.requests else waiting  # until a heartbeat says more
        return process.status(str(self), self.state, idle, requests=self.requests, restarts=self.restarts)
