"""Whether a run fits where it starts: numbers are chosen, and what does not fit is refused with the arithmetic."""

import pytest

from training.cluster import memory, shapes
from training.cluster.fit import fitted
from training.cluster.memory import GIB
from training.cluster.processes import Node
from training.config import parse
from training.errors import BadInput

SHAPE = shapes.SHAPES["0.6b"]


def nodes(*gpus):
    return [Node(id=str(n), name=f"node-{n}", address="10.0.0.1", gpus=count) for n, count in enumerate(gpus)]


def test_on_gpus_open_numbers_are_those_of_the_plan():
    config = parse({"cluster": {"engines": "auto", "learners": "auto"}})
    chosen = fitted(config, SHAPE, nodes(8), 80.0)
    assert (chosen.learners, chosen.engines) == (2, 6)
    chosen = fitted(config, SHAPE, nodes(4, 4), 80.0)
    assert (chosen.learners, chosen.engines) == (2, 6)


def test_without_gpus_open_numbers_are_one():
    chosen = fitted(parse({"cluster": {"engines": 3, "learners": "auto"}}), SHAPE, nodes(0), 1000.0)
    assert (chosen.learners, chosen.engines) == (1, 3)


def test_what_the_machine_has_no_memory_for_is_refused_with_each_part():
    config = parse({"cluster": {"engines": 2, "learners": 2}})
    needed = 2 * memory.learner(config, SHAPE, 2).total + 2 * memory.engine(config, SHAPE, 0).total
    fitted(config, SHAPE, nodes(0), needed / GIB + 0.01)
    with pytest.raises(BadInput, match=r"node-0 has 1\.0 GiB free.*a learner rank has.*an engine has") as caught:
        fitted(config, SHAPE, nodes(0), 1.0)
    assert caught.value.where == "cluster"
    assert f"need {needed / GIB:.1f} GiB" in caught.value.why


def test_an_engine_is_not_split_without_gpus():
    with pytest.raises(BadInput, match="node-0 has no GPU") as caught:
        fitted(parse({"cluster": {"tensor_parallel": 2}}), SHAPE, nodes(0), 1000.0)
    assert caught.value.where == "cluster.tensor_parallel"


def test_one_gpu_is_not_split_between_processes():
    with pytest.raises(BadInput, match="one GPU is shared in one process"):
        fitted(parse({"cluster": {"lag": 1}}), SHAPE, nodes(1), 80.0)


def test_more_than_there_are_gpus_is_refused():
    with pytest.raises(BadInput, match="GPU"):
        fitted(parse({"cluster": {"engines": 8, "learners": 2}}), SHAPE, nodes(8), 80.0)


def test_without_gpus_each_process_takes_a_core_of_the_cluster():
    two = [Node(id=str(n), name=f"node-{n}", address="10.0.0.1", gpus=0, cpus=2) for n in range(2)]
    fitted(parse({"cluster": {"engines": 2, "learners": 2}}), SHAPE, two, 1000.0)
    with pytest.raises(BadInput, match=r"5 processes of a core each are more than .*: node-0 2, node-1 2") as caught:
        fitted(parse({"cluster": {"engines": 3, "learners": 2}}), SHAPE, two, 1000.0)
    assert caught.value.where == "cluster.engines"
