"""Where the processes of a run are: how many, on which device, in which bundles, and on which cores of this machine."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice

import torch

from training.cluster import fit, memory, processes, shapes
from training.cluster.devices import memory_free, split
from training.cluster.nodes import one_line
from training.cluster.processes import Cluster, Node
from training.cluster.reservation import Bundles, Reservation, reserve
from training.cluster.supervisor import ProcessOptions
from training.config import RunConfig
from training.engines.choice import REGISTRY, choose
from training.errors import BadInput, OutsideError, ProcessLost

log = logging.getLogger(__name__)
WAIT_S = 120.0
PAUSE_S = 10.0
"""Seconds between two looks for room."""
ANSWER_S = 120.0
"""How long a node may take to say how much memory its GPUs have."""


@dataclass(frozen=True, slots=True)
class Placement:
    """`config` with all numbers of processes, and the device on which they sample and learn.

    Without a cluster everything is in this process.
    """

    config: RunConfig
    device: str
    cluster: Cluster | None = None
    reservation: Reservation | None = None


def place(config: RunConfig, device: str, failing: ExitStack, *, again: bool = False) -> Placement:
    """Start or join the Ray of a run, choose the numbers of its processes, and reserve their bundles.

    What is started is stopped by `failing`. A run whose numbers come to be those of one process stays in this one. See
    `placed` for `again` and what is raised.
    """
    if config.cluster.alone:
        fit.refuse_cpu_beside_cluster(config, device)
        return Placement(config, device)
    packages = (REGISTRY[choose(config.engine.name)].package,)
    cluster = processes.start(config.cluster.address, packages=packages, again=again)
    failing.callback(cluster.stop)
    config, device = placed(config, cluster, device, again=again)
    if config.cluster.alone and not cluster.joined:
        cluster.stop()
        return Placement(config, device)
    section, gpus = config.cluster, float(device == "cuda")
    parts = section.tensor_parallel
    reservation = reserve(cluster, learners=section.learners, engines=section.engines, gpus=gpus, parts=parts)
    failing.callback(reservation.close)
    return Placement(config, device, cluster, reservation)


def placed(config: RunConfig, cluster: Cluster, device: str, *, again: bool = False) -> tuple[RunConfig, str]:
    """Return the configuration with all numbers of processes, and their device; raise `BadInput` if they do not fit.

    Where an earlier attempt has fitted (`again`), what is missing may be held by what ended just now, or be on a node
    that starts again: it is awaited for `WAIT_S` seconds, after which `ProcessLost` lets another attempt follow.
    """
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return _fitted(config, cluster, device)
        except (BadInput, OutsideError) as error:
            left = deadline - time.monotonic()
            if not again:
                raise
            if left <= 0:
                raise ProcessLost(str(error)) from error
            log.warning("waiting up to %.0f s for room: %s", left, error)
            time.sleep(min(left, PAUSE_S))


def _fitted(config: RunConfig, cluster: Cluster, device: str) -> tuple[RunConfig, str]:
    nodes = cluster.nodes()
    if any(node.gpus for node in nodes) and config.model.device != "cpu":
        available, device = gpu_memory_of(cluster, nodes), "cuda"
    else:
        nodes, available = [replace(node, gpus=0) for node in nodes], memory_free()
    shape = shapes.of_model(config.model.base)
    section = fit.fitted(config, shape, nodes, available / memory.GIB, joined=cluster.joined)
    return config.model_copy(update={"cluster": section}), device


def gpu_memory_of(cluster: Cluster, nodes: Sequence[Node]) -> int:
    """Return the bytes of the smallest GPU of a cluster: each node is asked, for the driver's may have none.

    Raises `BadInput` for a node whose GPUs torch does not see, `OutsideError` for one that does not answer.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=0, max_calls=1)(gpu_memory_of_task)
    asked, sizes = [], []
    for node in (node for node in nodes if node.gpus):
        strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
        answer = ask.options(scheduling_strategy=strategy).remote() if cluster.joined else None
        asked.append((node, answer))
    for node, answer in asked:
        where = f"node {node.name} of the cluster"
        try:
            size: int = gpu_memory() if answer is None else ray.get(answer, timeout=ANSWER_S)
        except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError) as error:
            raise OutsideError(f"{where} did not say how much memory its GPUs have: {one_line(error)}") from error
        if not size:
            why = f"torch on {where} sees none of the {node.gpus} GPUs that Ray reports there"
            why += ': install a build of torch for its NVIDIA driver, or set model.device = "cpu"'
            raise BadInput(why, "model.device")
        sizes.append(size)
    return min(sizes)


def gpu_memory() -> int:
    """Return the bytes of the smallest GPU that torch sees in this process; 0 without any."""
    sizes = (torch.cuda.get_device_properties(number).total_memory for number in range(torch.cuda.device_count()))
    return min(sizes, default=0)


def gpu_memory_of_task() -> int:
    """Return `gpu_memory` for all GPUs of the node, in a task that Ray has given none, and whose process then ends."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    return gpu_memory()


def cores_of_processes(config: RunConfig, device: str) -> list[tuple[int, ...]]:
    """Return the cores of each learner rank, then of each engine: without GPUs they share this machine's evenly.

    An engine has as many shares as workers. None where there are too few, or where processes have GPUs or may be on
    other machines.
    """
    section, here = config.cluster, sorted(os.sched_getaffinity(0))
    shares = [1] * section.learners + [section.tensor_parallel] * section.engines
    if device != "cpu" or processes.joined_address(section.address) or len(here) < sum(shares):
        return [()] * len(shares)
    groups = iter(split(here, sum(shares)))
    return [tuple(chain.from_iterable(islice(groups, share))) for share in shares]


def options(config: RunConfig, cores: Sequence[tuple[int, ...]], bundles: Bundles) -> ProcessOptions:
    """Return how processes with these cores run in their bundles."""
    most = min(map(len, cores)) or 1
    threads = 0 if bundles.gpus else min(config.learn.threads or most, most)
    return ProcessOptions(count=len(cores), bundles=bundles, threads=threads, cores=tuple(cores))
