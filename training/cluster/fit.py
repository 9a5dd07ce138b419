"""Whether a run fits the machines that it starts on; numbers that its configuration leaves open are chosen there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from training.cluster import host_memory, layout, memory, splitting
from training.cluster.memory import GIB
from training.cluster.processes import Node
from training.cluster.section import ClusterSection
from training.cluster.shapes import ModelShape
from training.errors import BadInput

if TYPE_CHECKING:
    from training.config import RunConfig


def fitted(
    config: RunConfig, shape: ModelShape, nodes: Sequence[Node], memory_gib: float, *, joined: bool = False
) -> ClusterSection:
    """Return the section with all numbers, for nodes with GPUs of `memory_gib` each, or for one machine without GPUs
    that has so much memory free; raise `BadInput` with the arithmetic for what does not fit.

    On one GPU, which a learner rank and an engine share in one process, it is the section of a run in one process;
    that of another machine, of a cluster that was `joined`, is refused.
    """
    if gpus := sum(node.gpus for node in nodes):
        if gpus == 1 and joined:
            [name] = [node.name for node in nodes if node.gpus]
            why = f"processes of their own cannot share the one GPU of {name}: start the run on that machine without "
            why += "cluster.address and RAY_ADDRESS, or join a cluster with a GPU for each process"
            raise BadInput(why, "cluster.address")
        on_node = max(node.gpus for node in nodes)
        return layout.plan(config, shape, gpus, memory_gib, on_node, others=config.models_beside).section
    section = config.cluster
    chosen = section.model_copy(update={"engines": section.engines or 1, "learners": section.learners or 1})
    splitting.check(config, shape)
    here = config.learn.model_copy(update={"offload_activations": False})  # without GPUs there is one memory
    config = config.model_copy(update={"learn": here})
    _check_cores(chosen, nodes)
    if len(nodes) == 1:
        _check_memory(config, chosen, shape, nodes[0], memory_gib)
    return chosen


def _check_cores(section: ClusterSection, nodes: Sequence[Node]) -> None:
    """Raise `BadInput` for more processes than cores that Ray may give away, where it counts them."""
    parts, cores = section.tensor_parallel, sum(node.cpus for node in nodes)
    needed = section.learners + section.engines * parts
    if not cores:
        return
    each = ", ".join(f"{node.name} {node.cpus}" for node in nodes)
    if needed > cores:
        workers = f", the {parts} workers of each engine included," if parts > 1 else ""
        why = f"{needed} processes of a core each{workers} are more than Ray may give away on the nodes: {each}. "
        why += "Lower cluster.engines or cluster.learners, or add nodes"
        raise BadInput(why, "cluster.engines")
    if sum(node.cpus // parts for node in nodes) < section.engines:
        why = f"{section.engines} engines of {parts} cores on one node find no room on the nodes: {each}"
        raise BadInput(f"{why}. Lower cluster.engines or cluster.tensor_parallel", "cluster.engines")


def _check_memory(config: RunConfig, section: ClusterSection, shape: ModelShape, node: Node, memory_gib: float) -> None:
    """Raise `BadInput` for what needs more memory than a machine without GPUs has, where everything is on it."""
    parts = section.tensor_parallel
    rank, worker = memory.learner(config, shape, section.learners), memory.engine(config, shape, config.models_beside)
    beside = host_memory.engine(config, shape)  # of the process whose workers have the model, if they are others
    stored = host_memory.store(config, shape).total  # the driver has what it needs already
    engine = parts * worker.total + beside.total
    needed = section.learners * rank.total + section.engines * engine + stored
    if needed <= memory_gib * GIB:
        return
    of_worker = "an engine" if parts == 1 else f"each of its {parts} workers"
    lines = "; ".join(
        f"{name} has {', '.join(f'{line.name} {line.bytes / GIB:.2f}' for line in each.lines)} (GiB)"
        for name, each in (("a learner rank", rank), (of_worker, worker), ("an engine itself", beside))
        if each.lines
    )
    raise BadInput(
        f"{section.learners} learner ranks of {rank.total / GIB:.1f} GiB, {section.engines} engines of "
        f"{engine / GIB:.1f} GiB, and {stored / GIB:.1f} GiB of weights in Ray's store, "
        f"need {needed / GIB:.1f} GiB; {node.name} has {memory_gib:.1f} GiB free. "
        f"{lines}. Lower cluster.engines, engine.cache_gib or learn.tokens_per_batch",
        "cluster",
    )
