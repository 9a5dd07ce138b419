"""Two raylets on this machine that stand for two nodes of an operator's cluster, on loopback alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from training.cluster import processes

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster


@contextlib.contextmanager
def two_nodes(cpus: int = 2, head_cpus: int | None = None) -> Iterator[Cluster]:
    """Start a head and another node with so many CPUs each, or the head with `head_cpus`.

    Their processes import this checkout.
    """
    processes.import_ray()
    from ray.cluster_utils import Cluster

    own = cpus if head_cpus is None else head_cpus
    with processes._environment(), processes._loopback(), processes._few_processes():
        cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": own, "include_dashboard": False, "node_ip_address": "127.0.0.1"},
        )
        try:
            add_node(cluster, cpus)
            yield cluster
        finally:
            cluster.shutdown()


def add_node(cluster: Cluster, cpus: int) -> None:
    """Start another node with so many CPUs."""
    cluster.add_node(num_cpus=cpus, node_ip_address="127.0.0.1")


def lose_node(cluster: Cluster) -> None:
    """Let the node that is not the head end as one does that loses its power."""
    [node] = cluster.worker_nodes
    node.kill_all_processes(check_alive=False, allow_graceful=False)
