"""What every process of a run has besides its driver: a lease, its cores, and what it says of its memory and device."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger(__name__)


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
                log.error("the driver has not been heard for %.0f s: this %s ends", silent, self._name)
                os._exit(1)
            time.sleep(min(1.0, self._seconds / 4))


def pin(cores: Sequence[int]) -> None:
    """Run all threads of this process, and those that they start, on some cores."""
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))  # else vLLM binds its threads to all
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def rss_bytes() -> int:
    """Return the memory of this process, in bytes."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def device_of_process() -> str:
    """Return `cpu`, or `cuda` with the numbers of the node's GPUs that Ray gave to this process."""
    import ray

    numbers = ray.get_gpu_ids()
    return f"cuda:{','.join(map(str, numbers))}" if numbers else "cpu"


def gpu_bytes() -> int:
    """Return the GPU memory that torch has taken in this process, in bytes; 0 without a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return 0
    return int(torch.cuda.memory_reserved())
