"""Where the processes of a run are: how many, on which device, and on which cores of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch

from training.cluster import fit, memory, shapes
from training.cluster.processes import LOCAL, Cluster
from training.cluster.supervisor import ProcessOptions
from training.config import RunConfig


def placed(config: RunConfig, cluster: Cluster, device: str) -> tuple[RunConfig, str]:
    """Return the configuration with all numbers of processes, and their device; raise `BadInput` if they do not fit."""
    nodes = cluster.nodes()
    if any(node.gpus for node in nodes) and config.model.device != "cpu":
        free = torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else float("inf")
        device = "cuda"
    else:
        import psutil

        nodes, free = [replace(node, gpus=0) for node in nodes], psutil.virtual_memory().available
    section = fit.fitted(config, shapes.of_model(config.model.base), nodes, free / memory.GIB)
    return config.model_copy(update={"cluster": section}), device


def cores_of_processes(config: RunConfig, device: str) -> list[tuple[int, ...]]:
    """Return the cores of each learner rank, then of each engine: without GPUs they share this machine's evenly.

    None where there are too few, or where processes have GPUs or may be on other machines.
    """
    processes, here = config.cluster.learners + config.cluster.engines, sorted(os.sched_getaffinity(0))
    elsewhere = (config.cluster.address or os.environ.get("RAY_ADDRESS", "")) not in ("", LOCAL)
    if device != "cpu" or elsewhere or len(here) < processes:
        return [()] * processes
    edges = [len(here) * number // processes for number in range(processes + 1)]
    return [tuple(here[first:last]) for first, last in pairwise(edges)]


def options(config: RunConfig, cores: Sequence[tuple[int, ...]], *, on_gpu: bool) -> ProcessOptions:
    """Return how processes with these cores run; each has a GPU or none."""
    most = min(map(len, cores)) or 1
    threads = 0 if on_gpu else min(config.learn.threads or most, most)
    return ProcessOptions(count=len(cores), gpus=float(on_gpu), threads=threads, cores=tuple(cores))
