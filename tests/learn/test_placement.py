"""Where an attempt after another finds too little room, it waits; the first is refused. Nodes say what GPUs have."""

from contextlib import ExitStack
from unittest.mock import Mock

import pytest
import ray

from training.cluster import processes, shapes
from training.cluster.memory import GIB
from training.cluster.processes import Node
from training.config import parse
from training.errors import BadInput, OutsideError, ProcessLost
from training.learn import context, placement
from training.rundir import RunDir


@pytest.fixture
def tries(monkeypatch):
    """What each of two tries is refused with; the third fits."""
    left = [BadInput("too little memory", "cluster"), BadInput("too few GPUs", "cluster")]

    def fitted(config, cluster, device):
        if left:
            raise left.pop(0)
        return config, device

    monkeypatch.setattr(placement, "_fitted", fitted)
    monkeypatch.setattr(placement, "PAUSE_S", 0.01)
    return left


def test_an_attempt_after_another_waits_for_room(tries, caplog):
    assert placement.placed(parse({}), None, "cpu", again=True)[1] == "cpu"
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "cluster: too little memory",
        "cluster: too few GPUs",
    ]


def test_an_attempt_after_another_does_not_wait_for_ever(tries, monkeypatch):
    monkeypatch.setattr(placement, "WAIT_S", 0.0)
    with pytest.raises(ProcessLost, match="too little memory"):  # another attempt follows
        placement.placed(parse({}), None, "cpu", again=True)


def test_a_new_run_is_refused_at_once(tries):
    with pytest.raises(BadInput, match="too little memory"):
        placement.placed(parse({}), None, "cpu")
    assert len(tries) == 1


@pytest.mark.parametrize(
    "attempts, begun, again",
    [((1,), (1,), False), ((1, 2), (1, 2), True), ((1, 2), (2,), False), ((1, 2, 3), (1, 3), True), ((2,), (2,), True)],
)
def test_another_attempt_waits_where_one_has_begun_before_although_that_has_saved_nothing(
    tmp_path, monkeypatch, attempts, begun, again
):
    """The first may have run on another machine, where its folder is; one that was refused has no status."""

    class Seen(Exception):
        pass

    def start(address, *, packages, again):
        asked.append(again)
        return Mock()

    def placed(config, cluster, device, *, again):
        asked.append(again)
        raise Seen

    asked, run_dir = [], RunDir(tmp_path)
    for number in attempts:
        run_dir.attempt(number).root.mkdir(parents=True)
    for number in begun:
        run_dir.attempt(number).status.touch()
    monkeypatch.setattr(processes, "start", start)
    monkeypatch.setattr(placement, "placed", placed)
    with pytest.raises(Seen):
        context.build(parse({"cluster": {"engines": 2}}), run_dir, None)
    assert asked == [again, again]


class Joined:
    """A cluster without a GPU at its driver."""

    joined = True

    def __init__(self, *gpus):
        self.gpus = gpus

    def nodes(self):
        return [
            Node(id=f"{n:056x}", name=f"node-{n}", address="10.0.0.1", gpus=count) for n, count in enumerate(self.gpus)
        ]


def test_the_memory_of_gpus_that_the_driver_does_not_have_is_asked_of_the_nodes(monkeypatch):
    """The least of them counts: a rank of this model needs more than the smaller GPU has."""
    ram = {"node-1": 80 * GIB, "node-2": 8 * GIB}
    asked = []

    class Task:
        def options(self, scheduling_strategy):
            self.node = int(scheduling_strategy.node_id, 16)
            return self

        def remote(self):
            asked.append(self.node)
            return ram[f"node-{self.node}"]

    monkeypatch.setattr(ray, "remote", lambda **options: lambda function: Task())
    monkeypatch.setattr(ray, "get", lambda answer, timeout: answer)
    nodes = Joined(0, 4, 4).nodes()
    assert placement.gpu_memory_of(Joined(0, 4, 4), nodes) == 8 * GIB
    assert asked == [1, 2]
    ram["node-2"] = 0
    with pytest.raises(BadInput, match=r"torch on node node-2 of the cluster sees none of the 4 GPUs") as caught:
        placement.gpu_memory_of(Joined(0, 4, 4), nodes)
    assert caught.value.where == "model.device"


@pytest.mark.parametrize("again, error", [(False, OutsideError), (True, ProcessLost)])
def test_a_node_that_dies_while_it_is_asked_interrupts_an_attempt_after_another(monkeypatch, again, error):
    """The head still lists it for some seconds."""

    def died(cluster, nodes):
        raise OutsideError("node b of the cluster did not say how much memory its GPUs have")

    monkeypatch.setattr(placement, "gpu_memory_of", died)
    monkeypatch.setattr(placement, "WAIT_S", 0.0)
    with pytest.raises(error, match="node b of the cluster did not say"):
        placement.placed(parse({}), Joined(8), "cpu", again=again)


def test_a_model_that_gpus_elsewhere_have_no_room_for_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(placement.shapes, "of_model", lambda base: shapes.SHAPES["7b"])
    config = parse({"cluster": {"engines": 4, "learners": 4}, "learn": {"lora": False}})
    monkeypatch.setattr(placement, "gpu_memory_of", lambda cluster, nodes: 8 * GIB)
    with pytest.raises(BadInput, match=r"of a GPU with 8 GiB 7\.6 are usable"):
        placement.placed(config, Joined(0, 8), "cpu")


@pytest.mark.process
def test_a_node_is_asked_in_a_process_of_its_own(monkeypatch):
    """On a Ray that says to have a GPU, although torch sees none."""
    with processes.start(gpus=1) as cluster:
        monkeypatch.setattr(type(cluster), "joined", True)
        with pytest.raises(BadInput, match="sees none of the 1 GPUs that Ray reports there"):
            placement.gpu_memory_of(cluster, cluster.nodes())


@pytest.mark.parametrize(
    "address, device, model, refused",
    [
        ("10.0.0.5:6379", "cpu", "auto", True),
        ("10.0.0.5:6379", "cpu", "cpu", False),
        ("10.0.0.5:6379", "cuda", "auto", False),
        ("local", "cpu", "auto", False),
        ("", "cpu", "auto", False),
    ],
)
def test_one_process_does_not_train_on_the_cpu_beside_a_cluster_with_gpus(monkeypatch, address, device, model, refused):
    monkeypatch.setenv("RAY_ADDRESS", address)
    config = parse({"model": {"base": "tiny", "device": model}})
    with ExitStack() as failing:
        if refused:
            with pytest.raises(BadInput, match='to "auto" to train there'):
                placement.place(config, device, failing)
        else:
            assert placement.place(config, device, failing).cluster is None


def test_an_engine_and_a_rank_that_are_chosen_have_a_gpu_each(monkeypatch):
    """As `python -m training plan` shows it: nobody has checked whether one GPU has room for both."""
    cluster, reserve = Mock(joined=False), Mock()
    cluster.nodes.return_value = [Node(id="a", name="here", address="10.0.0.1", gpus=2)]
    monkeypatch.setattr(processes, "start", lambda *_, **__: cluster)
    monkeypatch.setattr(placement, "reserve", reserve)
    monkeypatch.setattr(placement, "gpu_memory_of", lambda *_: 80 * GIB)
    monkeypatch.setattr(placement.shapes, "of_model", lambda base: shapes.SHAPES["0.6b"])
    config = parse({"cluster": {"engines": "auto", "learners": "auto"}, "engine": {"name": "transformers"}})
    placed = placement.place(config, "cuda", ExitStack())
    assert placed.cluster is cluster
    reserve.assert_called_once_with(cluster, learners=1, engines=1, gpus=1.0, parts=1)
    cluster.stop.assert_not_called()


@pytest.mark.process
def test_numbers_that_come_to_be_those_of_one_process_start_none(monkeypatch):
    monkeypatch.setattr(placement.shapes, "of_model", lambda base: shapes.SHAPES["0.6b"])
    monkeypatch.setattr(placement, "memory_free", lambda: 1000 * GIB)
    config = parse({"cluster": {"engines": "auto", "learners": "auto"}})
    with ExitStack() as failing:
        placed = placement.place(config, "cpu", failing)
        assert (placed.cluster, placed.reservation, placed.config.cluster.alone) == (None, None, True)
        assert not ray.is_initialized()


@pytest.mark.parametrize(
    "here, engines, parts, expected",
    [
        (8, 3, 1, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (8, 2, 2, [(0,), (1, 2, 3), (4, 5, 6, 7)]),  # a rank has one share of five, an engine two
        (5, 2, 2, [(0,), (1, 2), (3, 4)]),
        (4, 2, 2, [(), (), ()]),
    ],
)
def test_the_cores_of_a_machine_are_shared_among_ranks_and_workers(monkeypatch, here, engines, parts, expected):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(placement.os, "sched_getaffinity", lambda pid: set(range(here)))
    config = parse({"cluster": {"learners": 1, "engines": engines, "tensor_parallel": parts}})
    assert placement.cores_of_processes(config, "cpu") == expected
    assert placement.cores_of_processes(config, "cuda") == [()] * (1 + engines)
