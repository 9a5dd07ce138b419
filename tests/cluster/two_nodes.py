"""Two raylets on this machine that stand for two nodes of an operator's cluster, on loopback alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from training.cluster import processes


@contextlib.contextmanager
def two_nodes(cpus: int = 2) -> Iterator[tuple[str, list[Any]]]:
    """Start a head and another node with so many CPUs each; yield the head's address and the two nodes.

    Their processes import this checkout; `nodes[1].kill_all_processes()` is what a node does that loses its power.
    """
    processes.import_ray()
    from ray.cluster_utils import Cluster

    with processes._environment(), processes._loopback():
        cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": cpus, "include_dashboard": False, "node_ip_address": "127.0.0.1"},
        )
        try:
            cluster.add_node(num_cpus=cpus, node_ip_address="127.0.0.1")
            yield cluster.address, [cluster.head_node, *cluster.worker_nodes]
        finally:
            cluster.shutdown()
