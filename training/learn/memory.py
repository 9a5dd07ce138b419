"""Large blocks of memory: taken from the operating system in huge pages, and given back once they are free."""

from __future__ import annotations

import ctypes
import os
import sys

from training.cluster.memory import MAPPED

M_MMAP_THRESHOLD = -3
"""The option's number in glibc's malloc.h."""


def release() -> None:
    """Return the C library's free memory to the system, where the library is glibc; else do nothing.

    glibc keeps freed blocks for itself unless they are large (`map_large_blocks`).
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def map_large_blocks() -> None:
    """Let the C library, where it is glibc, take every large block from the system, so that it goes back at once.

    By itself glibc keeps blocks of up to 32 MiB once one of that size was freed, and what is freed leaves holes that
    the next blocks do not fit: at the peak of SmolLM2's update with 3,700 tokens a process had 9.9 GB, and 6.3 GB so.
    Huge pages keep that from costing time: with pages of 4 KiB the system took a third of it. torch reads whether it
    may ask for them at its first tensor.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    if sys.platform == "linux" and (option := getattr(ctypes.CDLL(None), "mallopt", None)):
        option(M_MMAP_THRESHOLD, MAPPED)
