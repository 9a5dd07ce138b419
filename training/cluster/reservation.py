"""The placement group of a run: room for all of its processes, requested from Ray before any of them starts.

It is one group, which Ray grants as a whole or not at all, so that two runs cannot each hold half of what both need.
Learner ranks are on as few of its nodes as possible, engines on the rest. `ProcessLost`: the room did not come in time,
so that the attempt is interrupted, and another one tries again.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.cluster import watch
from training.cluster.processes import Cluster
from training.errors import ProcessLost

log = logging.getLogger(__name__)
WAIT_S = 300.0
"""How long the room may take to come: another run may have to end first, or a node to start."""
POLL_S = 1.0
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Bundles:
    """What each process of one kind takes of Ray's resources, and the bundles of the run's group that they are in.

    Without a group a process takes the resources wherever Ray puts it.
    """

    gpus: float = 0.0
    cpus: float = 0.0
    group: Any = None
    indices: tuple[int, ...] = ()

    def options(self, number: int) -> dict[str, Any]:
        """Return Ray's options for the process with this number."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        strategy: Any = "SPREAD"
        if self.group is not None:
            strategy = PlacementGroupSchedulingStrategy(self.group, self.indices[number])
        return {"num_gpus": self.gpus, "num_cpus": self.cpus, "scheduling_strategy": strategy}


@dataclass(slots=True)
class Reservation:
    """The bundles of a run; `close` gives them back."""

    learners: Bundles = field(default_factory=Bundles)
    engines: Bundles = field(default_factory=Bundles)

    def close(self) -> None:
        """Let Ray give the room to others; an operator's cluster also does so when the driver ends."""
        if self.learners.group is not None:
            _remove(self.learners.group)


def reserve(
    cluster: Cluster, *, learners: int, engines: int, gpus: float, parts: int = 1, wait_s: float = WAIT_S
) -> Reservation:
    """Return room for so many ranks of `gpus` GPUs each, and engines of `parts` times as many, once Ray has it for all.

    Without GPUs each rank, and each part of an engine, takes a core of a joined cluster, and nothing of a Ray of the
    run's own. The parts of an engine are on one node.
    """
    from ray.util import placement_group, placement_group_table

    cpus = 1.0 if cluster.joined and not gpus else 0.0
    need = {name: amount for name, amount in (("GPU", gpus), ("CPU", cpus)) if amount}
    if not need:
        return Reservation()
    of_engine = {name: parts * amount for name, amount in need.items()}
    name = f"Parley, process {os.getpid()} on {os.uname().nodename}, {next(_NUMBERS)}"
    group = placement_group([need] * learners + [of_engine] * engines, "PACK", name=name)
    try:
        _wait(cluster, group, _wanted(learners, engines, need, of_engine), wait_s)
        order = [node.id for node in cluster.nodes()]
        node_of = placement_group_table(group)["bundles_to_node_id"]
        # bundles of one size are interchangeable
        ranks, rest = divided(node_of if parts == 1 else {n: node_of[n] for n in range(learners)}, learners, order)
    except BaseException:
        _remove(group)
        raise
    rest = rest if parts == 1 else tuple(range(learners, learners + engines))
    return Reservation(Bundles(gpus, cpus, group, ranks), Bundles(parts * gpus, parts * cpus, group, rest))


def _wanted(learners: int, engines: int, of_rank: Mapping[str, float], of_engine: Mapping[str, float]) -> str:
    each = [" and ".join(f"{amount:g} {kind}" for kind, amount in need.items()) for need in (of_rank, of_engine)]
    if each[0] == each[1]:
        return f"{learners} learner ranks and {engines} engines with {each[0]} each"
    return f"{learners} learner ranks with {each[0]} each and {engines} engines with {each[1]} each"


def _wait(cluster: Cluster, group: Any, wanted: str, wait_s: float) -> None:
    """Wait until Ray has granted a group."""
    began, waiting = time.monotonic(), False
    while not group.wait(POLL_S):
        watch.check()
        seconds = time.monotonic() - began
        if seconds > wait_s:
            raise ProcessLost(
                f"Ray has had no room for {wanted} for {seconds:.0f} s. {held(cluster)}. "
                f"{free(cluster)}. Wait for what holds it, add nodes, or lower cluster.learners or cluster.engines"
            )
        if not waiting:
            log.info("waiting up to %.0f s for room for %s. %s. %s", wait_s, wanted, held(cluster), free(cluster))
            waiting = True


def _remove(group: Any) -> None:
    import ray
    from ray.util import remove_placement_group

    if not watch.lost():
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            remove_placement_group(group)


def divided(
    node_of: Mapping[int, str], learners: int, order: Sequence[str] = ()
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which bundles are the ranks', on as few nodes as possible, and which the engines'.

    `node_of` has the node of each bundle; among nodes that are as good, the first in `order` is taken.
    """
    bundles: dict[str, list[int]] = {node: [] for node in order}
    for index, node in sorted(node_of.items()):
        bundles.setdefault(node, []).append(index)
    ranks: list[int] = []
    while len(ranks) < learners:
        left = learners - len(ranks)
        enough = [node for node, each in bundles.items() if len(each) >= left]
        # the smallest node that has room for all that are left; without one, the largest
        node = min(enough, key=lambda n: len(bundles[n])) if enough else max(bundles, key=lambda n: len(bundles[n]))
        ranks += bundles.pop(node)[:left]
    return tuple(ranks), tuple(sorted({*node_of} - {*ranks}))


def held(cluster: Cluster) -> str:
    """Return which placement groups hold what and where; Ray has no names for other actors and tasks."""
    from ray.util import placement_group_table

    names, lines = {node.id: node.name for node in cluster.nodes()}, []
    for group in placement_group_table().values():
        if group["state"] in ("CREATED", "RESCHEDULING"):
            amounts: Counter[str] = Counter()
            for resources in group["bundles"].values():
                amounts.update(resources)
            words = " and ".join(f"{amount:g} {kind}" for kind, amount in sorted(amounts.items()))
            nodes = dict.fromkeys(names[node] for node in group["bundles_to_node_id"].values() if node in names)
            lines.append(f"{group['name'] or 'a group without a name'} holds {words} on {', '.join(nodes)}")
    return "; ".join(lines) or "No placement group holds anything, so that other actors or tasks do"


def free(cluster: Cluster) -> str:
    """Return what is free on each node, in words."""
    from ray._private.state import available_resources_per_node

    available = available_resources_per_node()  # type: ignore[no-untyped-call]
    lines = []
    for node in cluster.nodes():
        amounts = available.get(node.id, {})
        gpus, cpus = amounts.get("GPU", 0.0), amounts.get("CPU", 0.0)
        lines.append(f"{node.name} has {gpus:g} of {node.gpus} GPU and {cpus:g} CPU free")
    return "; ".join(lines)
