"""Where the processes of a run are: how many, on which device, and on which cores of this machine."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch

from training.cluster import fit, memory, shapes
from training.cluster.devices import memory_free
from training.cluster.processes import LOCAL, Cluster
from training.cluster.reservation import Reservation, Room, reserve
from training.cluster.supervisor import ProcessOptions
from training.config import RunConfig
from training.errors import BadInput

log = logging.getLogger(__name__)
WAIT_S = 120.0
PAUSE_S = 10.0
"""Seconds between two looks for room."""


def placed(config: RunConfig, cluster: Cluster, device: str, *, resumed: bool = False) -> tuple[RunConfig, str]:
    """Return the configuration with all numbers of processes, and their device; raise `BadInput` if they do not fit.

    A resumed run has fitted before: what is missing may be held by what ended just now, or be on a node that starts
    again, and is awaited for `WAIT_S` seconds.
    """
    deadline = time.monotonic() + (WAIT_S if resumed else 0.0)
    while True:
        try:
            return _fitted(config, cluster, device)
        except BadInput as error:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            log.warning("waiting up to %.0f s for room: %s", left, error)
            time.sleep(min(left, PAUSE_S))


def _fitted(config: RunConfig, cluster: Cluster, device: str) -> tuple[RunConfig, str]:
    nodes = cluster.nodes()
    if any(node.gpus for node in nodes) and config.model.device != "cpu":
        free = torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else float("inf")
        device = "cuda"
    else:
        nodes, free = [replace(node, gpus=0) for node in nodes], memory_free()
    section = fit.fitted(config, shapes.of_model(config.model.base), nodes, free / memory.GIB)
    return config.model_copy(update={"cluster": section}), device


def reserved(config: RunConfig, cluster: Cluster, device: str) -> Reservation:
    """Return the room of all processes of a configuration with all numbers, once the cluster has it."""
    section, each = config.cluster, float(device == "cuda")
    return reserve(
        cluster,
        learners=section.learners,
        engines=section.engines,
        gpus=each,
        engine_gpus=each * section.tensor_parallel,
    )


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


def options(config: RunConfig, cores: Sequence[tuple[int, ...]], room: Room) -> ProcessOptions:
    """Return how processes with these cores run in a room."""
    most = min(map(len, cores)) or 1
    threads = 0 if room.gpus else min(config.learn.threads or most, most)
    return ProcessOptions(count=len(cores), room=room, threads=threads, cores=tuple(cores))
