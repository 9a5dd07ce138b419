"""Room for the processes of a run, on two raylets of this machine that stand for two nodes."""

import time

import pytest

from tests.cluster.two_nodes import two_nodes
from training.cluster import processes
from training.cluster.reservation import free, reserve
from training.errors import OutsideError

pytestmark = pytest.mark.process


def test_ranks_are_packed_engines_take_the_rest_and_a_lack_of_room_is_stated():
    """Two nodes of two cores: two ranks fill one, two engines the other, and there is nothing left for a third."""
    with two_nodes(cpus=2) as (address, _), processes.start(address) as cluster:
        from ray.util import placement_group_table

        assert [node.cpus for node in cluster.nodes()] == [2, 2]
        assert cluster.warnings == []
        room = reserve(cluster, learners=2, engines=2, gpus=0.0, engine_gpus=0.0)
        places = [
            set(placement_group_table(each.group)["bundles_to_node_id"].values())
            for each in (room.learners, room.engines)
        ]
        assert [len(nodes) for nodes in places] == [1, 1]
        assert places[0] | places[1] == {node.id for node in cluster.nodes()}
        with pytest.raises(OutsideError) as caught:
            reserve(cluster, learners=1, engines=1, gpus=0.0, engine_gpus=0.0, wait_s=2.0)
        assert f"Ray at {address} has found no room for 1 learner ranks with 1 CPU each for " in str(caught.value)
        assert str(caught.value).count("(127.0.0.1) has 0 of 0 GPU and 0 CPU free") == 2
        room.close()
        deadline = time.monotonic() + 20
        while free(cluster).count("2 CPU free") != 2:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_a_ray_of_the_runs_own_needs_no_room_without_gpus():
    class Own:
        joined = False

    room = reserve(Own(), learners=2, engines=2, gpus=0.0, engine_gpus=0.0)
    assert (room.learners.group, room.engines.group) == (None, None)
    assert room.engines.options(1) == {"num_gpus": 0.0, "num_cpus": 0.0, "scheduling_strategy": "SPREAD"}
    room.close()
