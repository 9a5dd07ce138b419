"""The conditions of a measurement of the site, recorded with its numbers: command, commit, machine and load.

A machine counts as idle if its load average per core was at most `IDLE` at the start; the measurement itself adds load.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
IDLE = 0.25
"""One-minute load average per core."""


def measured(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of `measure` and its `conditions`."""
    began, load = datetime.now(UTC), os.getloadavg()[0]
    result = measure()
    return {**result, "conditions": {**conditions(began), "load_before": round(load, 2), "load_after": load_now()}}


def conditions(began: datetime) -> dict[str, Any]:
    """Return command, commit, time (UTC) and machine; memory in GiB."""
    return {
        "command": shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        "commit": commit(),
        "began": began.isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
    }


def load_now() -> float:
    """Return the one-minute load average."""
    return round(os.getloadavg()[0], 2)


def idle(measurement: Mapping[str, Any]) -> bool:
    """Return whether the machine was idle when a measurement began."""
    return bool(measurement["load_before"] / measurement["cores"] <= IDLE)


def commit() -> str:
    """Return the commit, with a plus sign if code has uncommitted changes; `unknown` outside a checkout."""
    try:
        head = _git("rev-parse", "--short=8", "HEAD")
        return f"{head}+" if _git("status", "--porcelain", "--untracked-files=no", "--", ":!docs") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def processor() -> str:
    """Return the name of the processor, as Linux reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
