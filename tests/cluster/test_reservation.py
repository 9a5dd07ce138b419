"""Room for the processes of a run, on two raylets of this machine that stand for two nodes."""

import concurrent.futures
import os
import time

import pytest

from tests.cluster.two_nodes import two_nodes
from training.cluster import processes
from training.cluster.reservation import Bundles, divided, free, reserve
from training.errors import ProcessLost


@pytest.mark.process
def test_ranks_are_packed_engines_take_the_rest_and_who_holds_the_room_is_stated():
    """Two nodes of two cores: two ranks fill one, two engines the other, and there is nothing left for a third."""
    with two_nodes(cpus=2) as nodes, processes.start(nodes.address) as cluster:
        from ray.util import placement_group_table

        assert [node.cpus for node in cluster.nodes()] == [2, 2]
        assert cluster.warnings == []
        room = reserve(cluster, learners=2, engines=2, gpus=0.0)
        assert room.learners.group is room.engines.group
        node_of = placement_group_table(room.learners.group)["bundles_to_node_id"]
        places = [{node_of[index] for index in each.indices} for each in (room.learners, room.engines)]
        assert [len(nodes) for nodes in places] == [1, 1]
        assert places[0] | places[1] == {node.id for node in cluster.nodes()}
        with pytest.raises(ProcessLost) as caught:
            reserve(cluster, learners=1, engines=1, gpus=0.0, wait_s=2.0)
        why = str(caught.value)
        assert "Ray has had no room for 1 learner ranks and 1 engines with 1 CPU each for " in why
        node = os.uname().nodename
        assert f"Parley, process {os.getpid()} on {node}, " in why
        assert f" holds 4 CPU on {node}" in why
        assert why.count(" has 0 of 0 GPU and 0 CPU free") == 2
        assert "lower cluster.learners or cluster.engines" in why
        room.close()
        wait_until_free(cluster)
        two_runs_at_once(cluster)
        split_engine(cluster)


def split_engine(cluster):
    """An engine of two parts fills one node, two ranks the other; two such engines leave no room for a rank."""
    from ray.util import placement_group_table

    room = reserve(cluster, learners=2, engines=1, gpus=0.0, parts=2)
    node_of = placement_group_table(room.learners.group)["bundles_to_node_id"]
    assert (room.learners.indices, room.engines.indices) == ((0, 1), (2,))
    assert node_of[0] == node_of[1] != node_of[2]
    assert (room.learners.options(0)["num_cpus"], room.engines.options(0)["num_cpus"]) == (1.0, 2.0)
    room.close()
    wait_until_free(cluster)
    with pytest.raises(ProcessLost, match="for 1 learner ranks with 1 CPU each and 2 engines with 2 CPU each for "):
        reserve(cluster, learners=1, engines=2, gpus=0.0, parts=2, wait_s=1.0)


def two_runs_at_once(cluster):
    """Each needs more than half of the cluster: one has all of it until it ends, and then the other."""

    def run(_):
        room = reserve(cluster, learners=2, engines=1, gpus=0.0, wait_s=60.0)
        time.sleep(1)
        room.close()
        return len(room.learners.indices), len(room.engines.indices)

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert [*threads.map(run, range(2))] == [(2, 1), (2, 1)]
    wait_until_free(cluster)


def wait_until_free(cluster):
    deadline = time.monotonic() + 20
    while free(cluster).count("2 CPU free") != 2:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_ray_of_the_runs_own_needs_no_room_without_gpus():
    class Own:
        joined = False

    room = reserve(Own(), learners=2, engines=2, gpus=0.0)
    assert (room.learners, room.engines) == (Bundles(), Bundles())
    assert room.engines.options(1) == {"num_gpus": 0.0, "num_cpus": 0.0, "scheduling_strategy": "SPREAD"}
    room.close()


@pytest.mark.parametrize(
    "nodes, learners, ranks",
    [
        ("aabb", 2, (0, 1)),
        ("abab", 2, (0, 2)),
        ("aaab", 1, (3,)),  # the other node's place, so that the engines of the first are together
        ("aaabbcccc", 2, (3, 4)),
        ("aabbbb", 4, (2, 3, 4, 5)),
        ("aabbbb", 5, (2, 3, 4, 5, 0)),  # no node has room for five
        ("aabbcc", 4, (0, 1, 2, 3)),
    ],
)
def test_ranks_get_bundles_on_as_few_nodes_as_possible(nodes, learners, ranks):
    indices, rest = divided(dict(enumerate(nodes)), learners)
    assert indices == ranks
    assert sorted([*indices, *rest]) == [*range(len(nodes))]


def test_among_nodes_that_are_as_good_the_first_has_the_ranks():
    assert divided(dict(enumerate("aabb")), 2, order="ba")[0] == (2, 3)
