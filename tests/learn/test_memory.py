"""Memory that is free again, as the operating system counts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOLES = """
import ctypes, sys
from pathlib import Path
from training.learn import memory

C = ctypes.CDLL(None)
C.malloc.restype, C.malloc.argtypes, C.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
SIZE = 100_000  # below the size at which glibc asks the system for every block by itself


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


blocks = [C.malloc(SIZE) for _ in range(2000)]
for block in blocks:
    ctypes.memset(block, 1, SIZE)
for block in blocks[:-1]:  # the last block holds the heap's end in place, so the heap cannot shrink by itself
    C.free(block)
before = resident()
memory.release()
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_blocks_go_back_to_the_system():
    """200 MB of blocks, freed but for the last, which keeps glibc from returning them."""
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 150e6


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_large_blocks_go_back_to_the_system_at_once():
    """20 blocks of 16 MB, freed but for the last, after one of 30 MB was freed, which glibc takes as a sign to keep."""
    work = HOLES.replace("SIZE = 100_000", "SIZE = 16_000_000").replace("range(2000)", "range(20)")
    work = work.replace("blocks = ", "memory.map_large_blocks()\nC.free(C.malloc(30_000_000))\nblocks = ", 1)
    work = work.replace("for block in blocks[:-1]", "full = resident()\nfor block in blocks[:-1]")
    work = work.replace("memory.release()\nprint(before - resident())", "print(full - before)")
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 290e6


HUGE = """
import re
from pathlib import Path
import torch
from training.learn import numerics
from training.run_sections import LearnSection

numerics.set_up(LearnSection(), 1)
tensor = torch.ones(2**24)
print(sum(map(int, re.findall(r"AnonHugePages: *([0-9]+) kB", Path("/proc/self/smaps").read_text("ascii")))))
"""
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(not ENABLED.exists() or "[never]" in ENABLED.read_text("ascii"), reason="no huge pages here")
def test_large_tensors_are_in_huge_pages():
    """A tensor of 64 MiB, in pages of 2 MiB."""
    done = subprocess.run([sys.executable, "-c", HUGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 60 * 1024
