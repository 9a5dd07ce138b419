"""What every process of a run has besides its driver: a Ray actor with a lease, its own cores, and a heartbeat.

The process ends by itself when its driver has not been heard for a lease. Its work runs on another thread, so that it
answers meanwhile. Errors raised on purpose are returned as `RemoteError`, so that whatever Ray raises means that the
process is gone or broken. `training.cluster.supervisor` is the driver's side.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from training.cluster.nodes import without_addresses
from training.errors import OutsideError, ParleyError, boundary, name_full_disk

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RemoteError:
    """An error that a process raised on purpose."""

    error: ParleyError


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a process answers at once: `steps` grows while it makes progress; empty `doing`: it waits for the driver.

    `cores` is the CPU time that it has used for each second since the last heartbeat, `gpu_busy` the share of the last
    moments in which its GPUs computed (a mean), None = unknown. Memory and CPU time are with those of its workers.
    """

    steps: int
    doing: str
    rss_bytes: int
    gpu_bytes: int
    cores: float = 0.0
    gpu_busy: float | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A process that is ready: the longest prompt and reply together that its model takes, and where it runs."""

    window: int
    node: str
    pid: int
    device: str


class Worker(ABC):
    """A process of a run behind Ray; `name` is what its log calls it. Subclasses have a method `start`.

    `lease_s`: the process ends when no `heartbeat` came for so long. `threads`: torch's threads; 0 = torch's choice.
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
        self._threads, self._cores = threads, tuple(cores)
        if cores:
            pin(cores)
        self._activities: list[str] = []  # in the order in which they began
        self._processes = {os.getpid(): psutil.Process()}
        self._on_gpu = False

    @property
    @abstractmethod
    def steps(self) -> int:
        """Grows while the process makes progress."""

    @property
    def doing(self) -> str:
        """What the process does, as a gerund; empty while it waits for the driver or for other processes."""
        return next(iter(self._activities), "")

    @property
    def workers(self) -> Sequence[int]:
        """The ids of processes that compute for this one, which count as part of it."""
        return ()

    async def heartbeat(self) -> Heartbeat:
        """Renew the lease and answer how far the process is."""
        self._lease.renew()
        rss_bytes, cores = self._used()
        return Heartbeat(
            steps=self.steps,
            doing=self.doing,
            rss_bytes=rss_bytes,
            gpu_bytes=self._gpu_bytes() if self._on_gpu else 0,
            cores=cores,
            gpu_busy=gpu_busy() if self._on_gpu else None,
        )

    def _used(self) -> tuple[int, float]:
        """Return the bytes of memory that this process and its workers have, and their CPU time for each second."""
        rss_bytes, percent = 0, 0.0
        for pid in (os.getpid(), *self.workers):
            with contextlib.suppress(psutil.NoSuchProcess):
                process = self._processes.setdefault(pid, psutil.Process(pid))  # kept: it measures since its last call
                rss_bytes += int(process.memory_info().rss)
                percent += process.cpu_percent()
        return rss_bytes, percent / 100

    def _gpu_bytes(self) -> int:
        return gpu_bytes()

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
            why = name_full_disk(str(error))  # only this process knows of which host
            if isinstance(error, OutsideError):  # gloo and NCCL name their peers by address
                why = without_addresses(why)
            return RemoteError(error if why == str(error) else type(error)(why))
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
        pause = min(1.0, self._seconds / 4)
        while True:
            silent = time.monotonic() - self._heard
            if silent > self._seconds:
                log.error("the driver has not been heard for %.0f s: %s ends", silent, self._name)
                os._exit(1)
            asleep = time.monotonic()
            time.sleep(pause)
            if (late := time.monotonic() - asleep - pause) > self._seconds / 4:
                # nor could this process hear it: it was suspended, or in a call that lets no other thread run
                self._heard = min(time.monotonic(), self._heard + late)


def ignore_expected_warnings() -> None:
    """Ignore what torch warns of in processes of a run: what they receive is only read, denormal numbers are zero."""
    for expected in ("The given NumPy array is not writable", "The value of the smallest subnormal"):
        warnings.filterwarnings("ignore", expected)


def skip_unused() -> None:
    """Let Transformers be imported without scikit-learn and SciPy: a quarter of the CPU time of a rank's imports.

    Where they are installed, it imports them with every model class: for assisted generation and for losses of object
    detection, which nothing here uses. To be called before the first of these classes is imported, else it changes
    nothing; the two themselves can be imported as ever.
    """
    from transformers import utils

    utils.is_sklearn_available = utils.is_scipy_available = _absent


def _absent() -> bool:
    return False


def pin(cores: Sequence[int]) -> None:
    """Run all threads of this process, and those that they start, on some cores."""
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


def gpu_busy() -> float | None:
    """Return the share of the last moments in which this process's GPUs computed; None if NVIDIA's library fails."""
    import torch

    try:
        # by number, else torch would begin to use a GPU on which only workers compute
        return fmean(torch.cuda.utilization(number) for number in range(torch.cuda.device_count())) / 100
    except Exception:  # whatever NVML and torch raise: a measurement ends no process
        log.debug("the utilisation of the GPU is unknown", exc_info=True)
        return None
