"""The GPUs of this machine, counted without torch."""

from __future__ import annotations

from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
"""Where NVIDIA's driver lists the GPUs, a folder each."""


def gpus_here() -> int:
    """Return how many GPUs NVIDIA's driver has found; 0 without it."""
    return sum(1 for _ in DRIVER.iterdir()) if DRIVER.is_dir() else 0
