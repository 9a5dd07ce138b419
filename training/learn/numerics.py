"""How torch computes in a process that learns: threads, memory, deterministic algorithms, denormal numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from training.learn import memory

if TYPE_CHECKING:
    from training.run_sections import LearnSection


def set_up(learn: LearnSection, threads: int = 0) -> None:
    """Set torch's threads (0 = as they are), where its large tensors are, whether it computes deterministically, and
    denormal numbers to zero. To be called before the first tensor.
    """
    memory.map_large_blocks()
    if threads:
        torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # gradients of small models have many, each slow on a CPU
    if learn.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS refuses to be deterministic
    torch.use_deterministic_algorithms(learn.deterministic)
