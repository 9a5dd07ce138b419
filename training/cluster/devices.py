"""The GPUs of this machine, counted without torch, its cores in groups, and its free memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
"""Where NVIDIA's driver lists the GPUs, a folder each."""


def gpus_here() -> int:
    """Return how many GPUs NVIDIA's driver has found; 0 without it."""
    return sum(1 for _ in DRIVER.iterdir()) if DRIVER.is_dir() else 0


def split(cores: Sequence[int], parts: int) -> list[tuple[int, ...]]:
    """Return cores in so many groups, in order, whose sizes differ by one at most."""
    edges = [len(cores) * number // parts for number in range(parts + 1)]
    return [tuple(cores[first:last]) for first, last in pairwise(edges)]


CGROUPS = Path("/sys/fs/cgroup")
"""Where the system shows control groups (version 2), by which a container has a share of the machine."""


def memory_free() -> int:
    """Return the bytes of memory that are free on this machine, or less where a control group may take less."""
    import psutil

    return min([int(psutil.virtual_memory().available), *_left_in_groups(_group())])


def _group() -> Path:
    """Return the folder of this process's control group; that of all where there is none."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return CGROUPS
    name = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    return CGROUPS / name


def _left_in_groups(group: Path) -> Iterator[int]:
    """Yield what a control group and those above it may still take; pages of files count as free."""
    for folder in (group, *group.parents):
        try:
            limit = (folder / "memory.max").read_text().strip()
            used = int((folder / "memory.current").read_text())
            counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        if limit.isdigit():
            yield max(0, int(limit) - used + int(counts.get("inactive_file", 0)))
        if folder == CGROUPS:
            return
