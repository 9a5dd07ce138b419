"""Processes by id and start time: an id alone may be another process's by now."""

import psutil


def start_time(pid: int) -> float | None:
    """When the process with this id started (seconds since the epoch), or None if there is none (or a zombie)."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def same_process(pid: int, started: float, tolerance: float = 2.0) -> bool:
    """Whether the process that had this id when it was written down is still alive."""
    actual = start_time(pid)
    return actual is not None and abs(actual - started) <= tolerance
