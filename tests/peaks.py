"""The most memory that a process has in a while, as Linux counts it."""

from pathlib import Path

from training.learn import memory


def growth(work):
    """Do some work; return the bytes of this process in memory before it, and the most while it was done."""
    memory.release()
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak is the present size again
    work()
    return before, _status("VmHWM")


def _status(name):
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
