"""Room for the processes of a run, requested from Ray before any of them starts.

Learner ranks are put on as few nodes as possible and engines are spread, as `plan` lays them out. `OutsideError`: the
room did not come in time; it states what was requested, and what is free on each node.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from training.cluster import watch
from training.cluster.processes import Cluster
from training.errors import OutsideError

log = logging.getLogger(__name__)
WAIT_S = 300.0
"""How long the room may take to come: another run may have to end first, or a node to start."""
POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Room:
    """Places for processes of one kind: what each takes of Ray's resources, and Ray's placement group of all.

    Without a group a process takes the resources wherever Ray puts it.
    """

    gpus: float = 0.0
    cpus: float = 0.0
    group: Any = None

    def options(self, index: int) -> dict[str, Any]:
        """Return Ray's options for the process with this index."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        strategy: Any = "SPREAD" if self.group is None else PlacementGroupSchedulingStrategy(self.group, index)
        return {"num_gpus": self.gpus, "num_cpus": self.cpus, "scheduling_strategy": strategy}


@dataclass(slots=True)
class Reservation:
    """The rooms of a run; `close` gives them back."""

    learners: Room = field(default_factory=Room)
    engines: Room = field(default_factory=Room)

    def close(self) -> None:
        """Let Ray give the room to others; an operator's cluster also does so when the driver ends."""
        import ray
        from ray.util import remove_placement_group

        for room in (self.learners, self.engines):
            if room.group is not None and not watch.lost():
                with contextlib.suppress(ray.exceptions.RayError, ValueError):
                    remove_placement_group(room.group)


def reserve(
    cluster: Cluster, *, learners: int, engines: int, gpus: float, engine_gpus: float, wait_s: float = WAIT_S
) -> Reservation:
    """Return room for so many ranks of `gpus` GPUs and engines of `engine_gpus`, once Ray has it.

    Without GPUs each process takes a core of a joined cluster, and nothing of a Ray of the run's own.
    """
    cpus = 1.0 if cluster.joined and not gpus else 0.0
    reservation, deadline = Reservation(), time.monotonic() + wait_s
    try:
        room = _room(cluster, "learner ranks", learners, gpus, cpus, "PACK", deadline)
        reservation.learners = room
        reservation.engines = _room(cluster, "engines", engines, engine_gpus, cpus, "SPREAD", deadline)
    except BaseException:
        reservation.close()
        raise
    return reservation


def _room(
    cluster: Cluster,
    noun: str,
    count: int,
    gpus: float,
    cpus: float,
    strategy: Literal["PACK", "SPREAD"],
    deadline: float,
) -> Room:
    from ray.util import placement_group, remove_placement_group

    need = {name: amount for name, amount in (("GPU", gpus), ("CPU", cpus)) if amount}
    if not need:
        return Room(gpus, cpus)
    began, group = time.monotonic(), placement_group([need] * count, strategy)
    waiting = False
    while not group.wait(POLL_S):
        watch.check()
        each = " and ".join(f"{amount:g} {name}" for name, amount in need.items())
        wanted = f"room for {count} {noun} with {each} each"
        if time.monotonic() > deadline:
            remove_placement_group(group)
            seconds = time.monotonic() - began
            raise OutsideError(f"Ray at {cluster.address} has found no {wanted} for {seconds:.0f} s; {free(cluster)}")
        if not waiting:
            log.info("waiting for %s; %s", wanted, free(cluster))
            waiting = True
    return Room(gpus, cpus, group)


def free(cluster: Cluster) -> str:
    """Return what is free on each node, in words."""
    from ray._private.state import available_resources_per_node

    available = available_resources_per_node()  # type: ignore[no-untyped-call]
    lines = []
    for node in cluster.nodes():
        amounts = available.get(node.id, {})
        gpus, cpus = amounts.get("GPU", 0.0), amounts.get("CPU", 0.0)
        lines.append(f"{node.name} ({node.address}) has {gpus:g} of {node.gpus} GPU and {cpus:g} CPU free")
    return "; ".join(lines)
