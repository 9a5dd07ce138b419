"""What every process of a run has besides its driver: a Ray actor with a lease, its own cores, and a beat.

The process ends by itself when its driver has not been heard for a lease. Its work runs on another thread, so that it
answers meanwhile. Errors raised on purpose are returned as `Raised`, so that whatever Ray raises means that the process
is gone or broken. `training.cluster.supervisor` is the driver's side.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from training.errors import OutsideError, ParleyError, boundary

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Raised:
    """An error that a process raised on purpose."""

    error: ParleyError


@dataclass(frozen=True, slots=True)
class Beat:
    """What a process answers at once: `steps` grows while it makes progress; empty `doing`: it waits for the driver.

    `cores` is the CPU time that it has used for each second since the beat before, `gpu_busy` the share of the last
    moments in which its GPU computed.
    """

    steps: int
    doing: str
    rss_bytes: int
    gpu_bytes: int
    cores: float = 0.0
    gpu_busy: float = 0.0


@dataclass(frozen=True, slots=True)
class Started:
    """A process that is ready: the longest prompt and reply together that its model takes, and where it runs."""

    window: int
    node: str
    pid: int
    device: str


class Worker:
    """A process of a run behind Ray; `name` is what its log calls it. Subclasses have a method `start`.

    `lease_s`: the process ends when no `beat` has come for so long. `threads`: torch's threads; 0 = torch's choice.
    `home` is the driver's PARLEY_HOME, which the nodes of a joined cluster do not know.
    """

    raises: type[OutsideError] = OutsideError
    """What errors of libraries are turned into."""

    def __init__(
        self, name: str, lease_s: float, cores: Sequence[int] = (), threads: int = 0, home: str | None = None
    ) -> None:
        if home:
            os.environ["PARLEY_HOME"] = home
        self._lease = Lease(lease_s, name)
        self._threads = threads
        if cores:
            pin(cores)
        self._activities: list[str] = []  # in the order in which they began
        self._process = psutil.Process()
        self._on_gpu = False

    @property
    def steps(self) -> int:
        """Grows while the process makes progress."""
        raise NotImplementedError

    async def beat(self) -> Beat:
        """Renew the lease and answer how far the process is."""
        self._lease.renew()
        return Beat(
            steps=self.steps,
            doing=next(iter(self._activities), ""),
            rss_bytes=int(self._process.memory_info().rss),
            gpu_bytes=gpu_bytes() if self._on_gpu else 0,
            cores=self._process.cpu_percent() / 100,
            gpu_busy=gpu_busy() if self._on_gpu else 0.0,
        )

    def _started(self, window: int) -> Started:
        device = device_of_process()
        self._on_gpu = device != "cpu"  # only now: torch is imported
        return Started(window, os.uname().nodename, os.getpid(), device)

    async def _outcome(self, doing: str, work: Future[Any]) -> Any:
        """Return the result of work on another thread, or what it raised; until then the process is `doing` that."""
        self._activities.append(doing)
        try:
            with boundary(into=self.raises):
                return await asyncio.wrap_future(work)
        except ParleyError as error:
            return Raised(error)
        finally:
            self._activities.remove(doing)


class Lease:
    """Ends this process when its driver has not been heard for `seconds`; `name` is what the log calls it."""

    def __init__(self, seconds: float, name: str) -> None:
        self._seconds, self._name, self._heard = seconds, name, time.monotonic()
        threading.Thread(target=self._watch, name="lease", daemon=True).start()

    def renew(self) -> None:
        """Note that the driver was heard."""
        self._heard = time.monotonic()

    def _watch(self) -> None:
        while True:
            silent = time.monotonic() - self._heard
            if silent > self._seconds:
                log.error("the driver has not been heard for %.0f s: %s ends", silent, self._name)
                os._exit(1)
            time.sleep(min(1.0, self._seconds / 4))


def ignore_expected_warnings() -> None:
    """Ignore what torch warns of in processes of a run: what they receive is only read, denormal numbers are zero."""
    for expected in ("The given NumPy array is not writable", "The value of the smallest subnormal"):
        warnings.filterwarnings("ignore", expected)


def pin(cores: Sequence[int]) -> None:
    """Run all threads of this process, and those that they start, on some cores."""
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))  # else vLLM binds its threads to all
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def device_of_process() -> str:
    """Return `cpu`, or `cuda` with the numbers of the node's GPUs that Ray gave to this process."""
    import ray

    numbers = ray.get_gpu_ids()
    return f"cuda:{','.join(map(str, numbers))}" if numbers else "cpu"


def gpu_bytes() -> int:
    """Return the GPU memory that torch has taken in this process, in bytes."""
    import torch

    return int(torch.cuda.memory_reserved()) if torch.cuda.is_initialized() else 0  # type: ignore[no-untyped-call]


def gpu_busy() -> float:
    """Return the share of the last moments in which this process's GPU computed; 0 without NVIDIA's library."""
    import torch

    try:
        return torch.cuda.utilization() / 100
    except (ImportError, RuntimeError):
        return 0.0
