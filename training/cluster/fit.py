"""Whether a run fits the machines that it starts on; numbers that its configuration leaves open are chosen there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from training.cluster import layout, memory
from training.cluster.memory import GIB
from training.cluster.processes import Node
from training.cluster.section import ClusterSection
from training.cluster.shapes import ModelShape
from training.errors import BadInput

if TYPE_CHECKING:
    from training.config import RunConfig


def fitted(config: RunConfig, shape: ModelShape, nodes: Sequence[Node], memory_gib: float) -> ClusterSection:
    """Return the section with all numbers, for nodes with GPUs of `memory_gib` each, or for one machine without GPUs
    that has so much memory free; raise `BadInput` with the arithmetic for what does not fit.
    """
    if gpus := sum(node.gpus for node in nodes):
        if gpus == 1:
            why = "one GPU is shared in one process: leave the section out, or have a GPU for each process"
            raise BadInput(why, "cluster")
        on_node = max(node.gpus for node in nodes)
        return layout.plan(config, shape, gpus, memory_gib, on_node, others=config.models_beside).section
    section = config.cluster
    chosen = section.model_copy(update={"engines": section.engines or 1, "learners": section.learners or 1})
    if section.tensor_parallel > 1:
        raise BadInput(f"{nodes[0].name} has no GPU to split an engine over", "cluster.tensor_parallel")
    here = config.learn.model_copy(update={"offload_activations": False})  # without GPUs there is one memory
    config = config.model_copy(update={"learn": here})
    processes, cores = chosen.learners + chosen.engines, sum(node.cpus for node in nodes)
    if cores and processes > cores:
        each = ", ".join(f"{node.name} {node.cpus}" for node in nodes)
        why = f"{processes} processes of a core each are more than Ray may give away on the nodes: {each}"
        raise BadInput(why, "cluster.engines")
    rank, engine = memory.learner(config, shape, chosen.learners), memory.engine(config, shape, config.models_beside)
    needed = chosen.learners * rank.total + chosen.engines * engine.total
    if len(nodes) == 1 and needed > memory_gib * GIB:
        lines = "; ".join(
            f"{name} has {', '.join(f'{line.name} {line.bytes / GIB:.2f}' for line in each.lines)} (GiB)"
            for name, each in (("a learner rank", rank), ("an engine", engine))
        )
        raise BadInput(
            f"{chosen.learners} learner ranks of {rank.total / GIB:.1f} GiB and {chosen.engines} engines of "
            f"{engine.total / GIB:.1f} GiB need {needed / GIB:.1f} GiB; {nodes[0].name} has {memory_gib:.1f} GiB free. "
            f"{lines}",
            "cluster",
        )
    return chosen
