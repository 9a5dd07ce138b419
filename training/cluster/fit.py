"""Whether a run fits the machines that it starts on; numbers that its configuration leaves open are chosen there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from training import engines
from training.cluster import host_memory, layout, memory, splitting
from training.cluster.memory import GIB, Line, Memory
from training.cluster.processes import Node, joined_address
from training.cluster.section import ClusterSection
from training.cluster.shapes import ModelShape
from training.errors import BadInput

SMALL = GIB // 20
"""Smaller lines are left out of a refusal."""

if TYPE_CHECKING:
    from training.config import RunConfig
    from training.engines.adapters import AdapterEngine


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
        section = layout.plan(config, shape, gpus, memory_gib, on_node).section
        if joined:
            section = _on_nodes(section, config.cluster.engines, nodes)
            section = section.model_copy(update={"address": config.cluster.address})
        return section
    machine = on_machine(config, shape, joined=joined)
    _check_cores(machine.section, nodes)
    alone = machine.section.alone and not joined  # which takes less than both, one after the other
    if len(nodes) == 1 and not alone and machine.needed > memory_gib * GIB:
        free = memory_gib + machine.driver.total / GIB  # the driver has taken its part
        helps = advice(config, shape, free, joined=joined)
        raise BadInput(machine.refusal(f"{nodes[0].name} has {memory_gib:.1f} GiB free", helps), "cluster")
    return machine.section


def refuse_cpu_beside_cluster(config: RunConfig, device: str) -> None:
    """Raise `BadInput` for one process that would work on the CPU of a machine whose GPUs are those of a cluster."""
    if device != "cpu" or config.model.device != "auto" or not joined_address(config.cluster.address):
        return
    why = "this machine has no GPU, and a run {} does not use the cluster that RAY_ADDRESS names: {}"
    if config.kind != "train":
        where = 'start it on a machine with a GPU, or set model.device = "cpu"'
        raise BadInput(why.format(f"of kind {config.kind!r}", where), "model.device")
    there = 'set cluster.engines and cluster.learners to "auto" to train there, or model.device = "cpu" to train here'
    raise BadInput(why.format("in one process", there), "cluster")


def make_engine(config: RunConfig, *model: Any, device: str, **options: Any) -> AdapterEngine:
    """Return an engine in this process, as `engines.make` does; raise `BadInput` for the CPU beside a cluster."""
    refuse_cpu_beside_cluster(config, device)
    return engines.make(*model, device=device, **options)


@dataclass(frozen=True, slots=True)
class Machine:
    """The memory of a run's processes on one machine without GPUs.

    `worker` is an engine's, or that of each of the workers over which it is split; `scheduler` is then that of its own
    process, and empty without workers. `driver` and `store` (Ray's) are empty where everything is one process.
    """

    section: ClusterSection
    rank: Memory
    worker: Memory
    scheduler: Memory
    driver: Memory
    store: Memory

    @property
    def engine(self) -> int:
        """The bytes of an engine, its workers included."""
        return self.section.tensor_parallel * self.worker.total + self.scheduler.total

    @property
    def needed(self) -> int:
        """The bytes of all engines and ranks, and of the store: what a driver needs beside its own."""
        section = self.section
        return section.learners * self.rank.total + section.engines * self.engine + self.store.total

    @property
    def memory(self) -> Memory:
        """What the whole machine needs, a line for each kind of process."""
        section, store = self.section, self.store.total
        counted = (("learner ranks", section.learners, self.rank.total), ("engines", section.engines, self.engine))
        lines = [Line(name, count * size, f"{count} × {size / GIB:.2f} GiB") for name, count, size in counted]
        lines += [Line("driver", self.driver.total, "its process"), Line("Ray's store", store, "weights for engines")]
        return Memory(tuple(line for line in lines if line.bytes))

    def refusal(self, available: str, helps: Sequence[str]) -> str:
        """Return the arithmetic in words, beside what is `available`, and the changes with which it would fit."""
        parts, stored = self.section.tensor_parallel, self.store.total
        of_worker = "an engine" if parts == 1 else f"each of its {parts} workers"
        named = (("a learner rank", self.rank), (of_worker, self.worker), ("an engine itself", self.scheduler))
        lines = "; ".join(f"{name} has {_large(each)} (GiB)" for name, each in named if each.lines)
        each = f"{self.rank.total / GIB:.1f} and {self.engine / GIB:.1f} GiB each"
        with_store = f", with {stored / GIB:.1f} GiB of weights in Ray's object store" if stored >= SMALL else ""
        fits = (
            f"It would fit with {', or with '.join(helps)}" if helps else "No setting that is tried here makes it fit"
        )
        return (
            f"{self.section.counts} of {each} need {self.needed / GIB:.1f} GiB{with_store}; {available}. {fits}. "
            f"{lines[0].upper()}{lines[1:]}"
        )


def _large(needed: Memory) -> str:
    """Return the lines that matter, in GiB; the libraries of a process are always among them."""
    return ", ".join(f"{line.name} {line.bytes / GIB:.2f}" for line in needed.lines if line.bytes >= SMALL)


def on_machine(config: RunConfig, shape: ModelShape, *, joined: bool = False) -> Machine:
    """Return the processes of a run without GPUs, and their memory on one machine; open numbers are 1 there."""
    section = config.cluster
    chosen = section.model_copy(update={"engines": section.engines or 1, "learners": section.learners or 1})
    splitting.check(config, shape)
    here = config.learn.model_copy(update={"offload_activations": False})  # without GPUs there is one memory
    config = config.model_copy(update={"learn": here})
    alone = chosen.alone and not joined
    return Machine(
        chosen,
        rank=memory.learner_on_cpu(config, shape, chosen.learners),
        worker=memory.engine(config, shape),
        scheduler=host_memory.engine(config, shape),
        driver=Memory(()) if alone else host_memory.driver(config, shape),
        store=Memory(()) if alone else host_memory.store(config, shape),
    )


def advice(config: RunConfig, shape: ModelShape, memory_gib: float, *, joined: bool = False) -> list[str]:
    """Return what would let a run fit a machine without GPUs: fewer engines or ranks, or other settings."""

    def fits(each: RunConfig) -> bool:
        return on_machine(each, shape, joined=joined).memory.total <= memory_gib * GIB

    fewer = []
    for name in ("engines", "learners"):
        for count in range(getattr(config.cluster, name) - 1, 0, -1):
            section = config.cluster.model_copy(update={name: count})
            if fits(config.model_copy(update={"cluster": section})):
                fewer.append(f"cluster.{name} = {count}")
                break
    return fewer + layout.changes_that_fit(config, layout.LEARNER_CHANGES + layout.ENGINE_CHANGES, fits)


def _on_nodes(section: ClusterSection, wanted: int, nodes: Sequence[Node]) -> ClusterSection:
    """Return the section with no more engines of several GPUs than nodes of different sizes have room for.

    Raises `BadInput` where this is less than what the configuration has `wanted`, or none.
    """
    parts = section.tensor_parallel
    room = sum(node.gpus // parts for node in nodes)
    if room < max(wanted, 1):
        each = ", ".join(f"{node.name} {node.gpus}" for node in nodes)
        why = f"{section.engines} engines of {parts} GPUs on one node cannot be placed on the nodes: {each}"
        raise BadInput(f"{why}. Lower cluster.engines or cluster.tensor_parallel", "cluster.engines")
    return section.model_copy(update={"engines": min(room, section.engines)})


def _check_cores(section: ClusterSection, nodes: Sequence[Node]) -> None:
    """Raise `BadInput` for more processes than cores that Ray has to allocate, where it counts them."""
    parts, cores = section.tensor_parallel, sum(node.cpus for node in nodes)
    needed = section.learners + section.engines * parts
    if not cores:
        return
    each = ", ".join(f"{node.name} {node.cpus}" for node in nodes)
    if needed > cores:
        workers = f", the {parts} workers of each engine included," if parts > 1 else ""
        why = f"{needed} processes of a core each{workers} are more than Ray has to allocate on the nodes: {each}. "
        why += "Lower cluster.engines or cluster.learners, or add nodes"
        raise BadInput(why, "cluster.engines")
    if sum(node.cpus // parts for node in nodes) < section.engines:
        why = f"{section.engines} engines of {parts} cores on one node cannot be placed on the nodes: {each}"
        raise BadInput(f"{why}. Lower cluster.engines or cluster.tensor_parallel", "cluster.engines")
