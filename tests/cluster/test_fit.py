"""Whether a run fits where it starts: numbers are chosen, and what does not fit is refused with the arithmetic."""

import re

import pytest

from tests.cluster.advice import followed
from training.cluster import layout, memory, shapes
from training.cluster.fit import fitted, refuse_cpu_beside_cluster
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
    needed = 2 * memory.learner_on_cpu(config, SHAPE, 2).total + 2 * memory.engine(config, SHAPE).total
    needed += 4 * 596_049_920  # the newest weights, in Ray's store
    fitted(config, SHAPE, nodes(0), needed / GIB + 0.01)
    with pytest.raises(BadInput, match=r"node-0 has 1\.0 GiB free.*A learner rank has.*an engine has") as caught:
        fitted(config, SHAPE, nodes(0), 1.0)
    assert caught.value.where == "cluster"
    assert caught.value.why.startswith("2 learner ranks and 2 engines of ")
    assert f"need {needed / GIB:.1f} GiB" in caught.value.why
    assert " 0.00" not in caught.value.why
    with pytest.raises(BadInput, match=r"It would fit with cluster\.engines = 1, or with ") as caught:
        fitted(config, SHAPE, nodes(0), needed / GIB - 0.01)


def test_without_gpus_each_worker_of_an_engine_needs_memory_and_a_core():
    config = parse({"cluster": {"engines": 2, "tensor_parallel": 2}, "engine": {"name": "vllm"}})
    worker = memory.engine(config, SHAPE)
    assert next(line.bytes for line in worker.lines if line.name == "weights") == 2 * 596_049_920  # 4 bytes, halved
    # each engine has a process beside its two workers: 1 GiB, and the largest tensor in memory that they share
    engine = 2 * worker.total + GIB + 4 * 151_936 * 1024
    needed = memory.learner_on_cpu(config, SHAPE, 1).total + 2 * engine + 4 * 596_049_920
    chosen = fitted(config, SHAPE, nodes(0), needed / GIB + 0.01)
    assert (chosen.learners, chosen.engines, chosen.tensor_parallel) == (1, 2, 2)
    with pytest.raises(BadInput, match=r"each of its 2 workers has .*an engine itself has Python") as caught:
        fitted(config, SHAPE, nodes(0), needed / GIB - 0.01)
    assert f" and {engine / GIB:.1f} GiB each need" in caught.value.why


def test_a_model_that_does_not_divide_is_refused_without_gpus_too():
    with pytest.raises(BadInput, match="3 does not divide the 16 attention heads") as caught:
        fitted(parse({"cluster": {"tensor_parallel": 3}, "engine": {"name": "vllm"}}), SHAPE, nodes(0), 1000.0)
    assert caught.value.where == "cluster.tensor_parallel"


def test_on_one_gpu_a_run_whose_numbers_are_open_is_the_one_process_that_is_planned():
    config = parse({"cluster": {"engines": "auto", "learners": "auto"}})
    chosen = fitted(config, SHAPE, nodes(1), 80.0)
    assert chosen == layout.plan(config, SHAPE, 1, 80.0).section
    assert chosen.alone


@pytest.mark.parametrize(
    "section, joined, where, why",
    [
        ({"lag": 1}, False, "cluster.lag", "set cluster.lag = 0, or use at least 2 GPUs"),
        ({"address": "local"}, False, "cluster.address", "leave cluster.address out, or use at least 2 GPUs"),
        ({"engines": 2}, False, "cluster.engines", 'Set cluster.engines = 1 or "auto"'),
        ({"engines": "auto"}, True, "cluster.address", "cannot share the one GPU of node-0: start the run on that"),
    ],
)
def test_one_gpu_is_not_split_between_processes_neither_at_start_nor_in_the_plan(section, joined, where, why):
    config = parse({"cluster": section})
    with pytest.raises(BadInput) as caught:
        fitted(config, SHAPE, nodes(1), 80.0, joined=joined)
    assert caught.value.where == where
    assert why in caught.value.why
    if not joined:
        with pytest.raises(BadInput) as planned:
            layout.plan(config, SHAPE, 1, 80.0)
        assert planned.value.why == caught.value.why


def test_more_than_there_are_gpus_is_refused():
    with pytest.raises(BadInput, match="GPU"):
        fitted(parse({"cluster": {"engines": 8, "learners": 2}}), SHAPE, nodes(8), 80.0)


def test_without_gpus_each_process_takes_a_core_of_the_cluster():
    two = [Node(id=str(n), name=f"node-{n}", address="10.0.0.1", gpus=0, cpus=2) for n in range(2)]
    fitted(parse({"cluster": {"engines": 2, "learners": 2}}), SHAPE, two, 1000.0)
    with pytest.raises(BadInput, match=r"5 processes of a core each are more than .*: node-0 2, node-1 2") as caught:
        fitted(parse({"cluster": {"engines": 3, "learners": 2}}), SHAPE, two, 1000.0)
    assert caught.value.where == "cluster.engines"


def test_the_workers_of_an_engine_take_cores_of_one_node():
    def on(engines, *cpus):
        each = [Node(id=str(n), name=f"node-{n}", address="10.0.0.1", gpus=0, cpus=c) for n, c in enumerate(cpus)]
        section = {"engines": engines, "tensor_parallel": 2}
        return fitted(parse({"cluster": section, "engine": {"name": "vllm"}}), SHAPE, each, 1000.0)

    assert on(2, 3, 2).engines == 2
    with pytest.raises(BadInput, match=r"7 processes of a core each, the 2 workers of each engine included, are more"):
        on(3, 3, 3)
    with pytest.raises(BadInput, match=r"3 engines of 2 cores on one node cannot be placed .*: node-0 3, node-1"):
        on(3, 3, 3, 1)


def test_one_engine_and_one_rank_on_two_gpus_are_processes_of_their_own():
    config = parse({"cluster": {"engines": "auto", "learners": "auto"}})
    assert fitted(config, SHAPE, nodes(2), 80.0).address == "local"
    assert fitted(config, SHAPE, nodes(1, 1), 80.0, joined=True).address == "", "that of the cluster it has joined"


def test_engines_of_several_gpus_need_nodes_that_have_as_many():
    def on(engines, *gpus):
        section = {"engines": engines, "learners": 2, "tensor_parallel": 8}
        return fitted(parse({"cluster": section, "engine": {"name": "vllm"}}), SHAPE, nodes(*gpus), 80.0, joined=True)

    with pytest.raises(BadInput, match="on the nodes: node-0 8, node-1 4, node-2 4, node-3 4, node-4 4") as caught:
        on(2, 8, 4, 4, 4, 4)
    assert caught.value.where == "cluster.engines"
    assert on("auto", 8, 4, 4, 4, 4).engines == 1


@pytest.mark.parametrize(
    "cluster, joined",
    [({}, True), ({"engines": "auto", "learners": "auto"}, True), ({"engines": 2, "learners": 2}, True),
     ({"engines": 2, "learners": 2}, False)],
)  # fmt: skip
@pytest.mark.parametrize("gib", [8.0, 10.0, 12.0])
def test_what_is_advised_without_gpus_fits(cluster, gib, joined):
    config = parse({"cluster": cluster, "learn": {"tokens_per_batch": 1024, "lora": False}})
    with pytest.raises(BadInput) as caught:
        fitted(config, SHAPE, nodes(0), gib, joined=joined)
    words = re.search(r"would fit with (.*?)\. A learner", caught.value.why)
    for each in words[1].split(", or with ") if words else []:
        fitted(followed(config, each), SHAPE, nodes(0), gib, joined=joined)


@pytest.mark.parametrize(
    "kind, where, advice",
    [("train", "cluster", "to train there"), ("sft", "model.device", "a machine with a GPU"),
     ("eval", "model.device", "a machine with a GPU")],
)  # fmt: skip
def test_one_process_does_not_work_on_the_cpu_beside_a_cluster(monkeypatch, kind, where, advice):
    def config(device):
        return parse({"kind": kind, "model": {"device": device}})

    refuse_cpu_beside_cluster(config("auto"), "cpu")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.5:6379")
    for device, picked in (("cpu", "cpu"), ("auto", "cuda")):
        refuse_cpu_beside_cluster(config(device), picked)
    with pytest.raises(BadInput, match=f"has no GPU.*{advice}") as caught:
        refuse_cpu_beside_cluster(config("auto"), "cpu")
    assert caught.value.where == where
