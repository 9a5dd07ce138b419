"""One rank and several learn the same: over gloo, with adapters and with all weights."""

import asyncio
import os
import re
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
import torch.distributed as dist

from tests.learn.rank_work import (
    BASIS,
    STEPS,
    absent,
    failing,
    going_back,
    learning,
    loading,
    made,
    on_ranks,
    resuming,
    some,
    taking,
    telling,
)
from tests.toy_models import write_random_llama
from training.attempts.progress import Progress
from training.bases import ModelInfo
from training.errors import BadInput
from training.learn import checkpoint, ranks
from training.learn.learner import InProcess, Learner
from training.learn.rank_actor import RankActor
from training.learn.ranks import ALONE, DistContext
from training.rundir import AttemptDir

CASES = {
    "adapters": {"lora": {"rank": 4}, "critic": {"kind": "ridge"}},
    "several epochs": {"lora": {"rank": 4}, "critic": {"kind": "ridge"}, "epochs": 2},
    "adapters, starting model read": {"lora": {"rank": 4}, "critic": {"kind": "linear", "features": "start"}},
    "all weights": {"lora": None, "critic": {"kind": "linear"}},
    "all weights, recomputed": {"lora": None, "critic": {"kind": "mlp", "hidden": 8}, "recompute": True},
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("base") / "model"))


ADAM = 2e-2
"""What the losses of value heads with gradients may differ by: the first gradient of a bias is 0 but for rounding, of
which Adam takes the sign, and the other weights follow it. So their weights are not compared, their gradients are."""


def close(first, second, besides=(), step=0.0):
    """Equal to a twenty-thousandth of each tensor's largest number; the parts `besides` are not compared.

    One in ten thousand numbers may differ by `step`: where a gradient is 0 but for rounding, Adam goes either way.
    """
    assert first.keys() == second.keys()
    strayed = 0
    for name, tensor in first.items():
        if not any(part in name for part in besides):
            difference = (second[name] - tensor).abs()
            far = difference > 5e-5 * max(tensor.abs().max().item(), 1e-3)
            strayed += int(far.sum())
            assert not far.any() or difference.max().item() <= step, name
    assert strayed <= 1e-4 * sum(tensor.numel() for tensor in first.values())


@pytest.mark.process
@pytest.mark.parametrize("world, names", [(2, [*CASES]), (3, ["several epochs", "all weights"])])
def test_several_ranks_learn_what_one_learns(base, tmp_path, world, names):
    cases = [CASES[name] for name in names]
    several = on_ranks(world, tmp_path, learning, base, tmp_path, cases)
    for number, alone in enumerate(learning(ALONE, base, tmp_path, cases)):
        parts = [part[number] for part in several]
        for part in parts:
            close(alone["weights"], part["weights"], step=2 * STEPS * BASIS["lr"])  # two updates of each
            close(alone["moments"], part["moments"], step=1e-7)  # float32's rounding of a sum of numbers around 1
            close(alone["critic"], part["critic"], besides=(".net.", ".last."))
        for step in range(STEPS):
            learned = parts[0]["metrics"][step]
            assert learned.keys() == alone["metrics"][step].keys()
            for name, value in alone["metrics"][step].items():
                digits = ADAM if step and name.startswith(("value_loss", "critic")) else 1e-5
                assert learned[name] == pytest.approx(value, rel=digits, abs=1e-6), name
            assert sum(len(part["read"][step]) for part in parts) == len(alone["read"][step])


@pytest.mark.process
@pytest.mark.parametrize("how", ["number", "stop"])
def test_what_one_rank_raises_all_raise_and_nothing_is_learned(base, tmp_path, how):
    wanted = {"number": "BadStep: the loss is not finite", "stop": "StopRequested: asked"}[how]
    assert on_ranks(2, tmp_path, failing, base, tmp_path, 1, how) == [(wanted, True)] * 2


@pytest.mark.process
def test_ranks_go_back_together_or_not_at_all(base, tmp_path):
    learner = Learner(made(base, ALONE, **UPDATING, lora=None), 0)
    learner.updater.run(learner.updater.plan(some(1), 1), 1, Progress(AttemptDir(tmp_path / "attempt"), 1))
    state, info = checkpoint.TrainerState(1), ModelInfo(name="m", base="tiny")
    InProcess(learner).save(tmp_path / "saved", info, state, adapter_only=False, beat=lambda: None)
    gone = tmp_path / "nowhere"
    for beats, tensors, error in on_ranks(2, tmp_path, going_back, base, tmp_path / "saved", gone):
        assert beats >= tensors > 0
        assert error == f"{gone}: the checkpoint is not on this machine, or is incomplete"


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_rank_loads_its_shard_and_one_tensor_at_a_time(tmp_path):
    base = write_random_llama(tmp_path / "model", width=512, layers=10, intermediate_size=4096)
    size = (base / "model.safetensors").stat().st_size  # of 90 tensors, the largest 8 MiB
    assert size > 280e6
    # all weights; with a frozen reference too; frozen weights with 1 MB of adapters
    cases = [{"lora": None, "kl": "none", "kl_measured": False}, {"lora": None}, {"lora": {"rank": 4}}]
    for loaded in on_ranks(2, tmp_path, loading, str(base), cases):
        for (peak, shard), models in zip(loaded, (1, 2, 1), strict=True):
            assert 0.49 * size < shard < 0.51 * size
            assert peak < models * shard + 0.15 * size


UPDATING = {"kl": "none", "kl_measured": False, "critic_warmup": 0}
"""Settings by which the first step updates the policy, and needs nothing measured."""


def saved(base, folder, settings):
    """The state that a learner of one rank saves after a step, as it is read again, and its tensors."""
    learner = Learner(made(base, ALONE, **settings), 0)
    learner.updater.run(learner.updater.plan(some(1), 1), 1, Progress(AttemptDir(folder / "attempt"), 1))
    tensors = dict(learner.tensors())
    state = checkpoint.TrainerState(1, learner.optimizer_data(), tensors)
    checkpoint.write_with(folder / "saved", lambda inside: None, state)
    return checkpoint.read(folder / "saved"), tensors


@pytest.mark.process
@pytest.mark.parametrize("settings", [CASES[name] | UPDATING for name in ("adapters", "all weights")], ids=str)
def test_ranks_take_the_state_that_one_rank_saved_also_those_without_its_file(base, tmp_path, settings):
    state, tensors = saved(base, tmp_path, settings)
    for taken in on_ranks(3, tmp_path, resuming, base, state, tmp_path / "nowhere", settings):
        assert taken.keys() == tensors.keys()
        assert any(name.endswith("exp_avg_sq") for name in taken)
        assert all(torch.equal(taken[name], tensor) for name, tensor in tensors.items())


def test_a_state_that_no_rank_can_read_is_refused(base, tmp_path):
    state, _ = saved(base, tmp_path, CASES["adapters"] | UPDATING)
    state.tensors.path = tmp_path / "nowhere"
    with pytest.raises(BadInput, match="no learner rank can read it: nodes need the run directory at the same path"):
        Learner(made(base, ALONE, **CASES["adapters"] | UPDATING), 0).take(state)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_rank_takes_its_shard_of_the_optimizers_state_and_one_tensor_at_a_time(tmp_path):
    """The state is twice as large as the weights, and no rank has more of it than its half and some rows."""
    base = str(write_random_llama(tmp_path / "model", width=512, layers=5, intermediate_size=4096))
    state, tensors = saved(base, tmp_path, UPDATING | {"lora": None})
    size = sum(t.nbytes for name, t in tensors.items() if name.startswith("optimizer."))
    assert size > 280e6
    for peak, shard in on_ranks(2, tmp_path, taking, base, state):
        assert 0.49 * size < shard < 0.51 * size
        assert peak < shard + 0.1 * size


@pytest.mark.process
@pytest.mark.parametrize("settings", [{"lora": None}, {"lora": {"rank": 4}}], ids=str)
def test_a_rank_without_the_models_files_gets_its_rows_from_one_that_has_them(base, tmp_path, settings):
    expected = absent(ALONE, base, "", settings)
    for weights in on_ranks(3, tmp_path, absent, base, str(tmp_path / "nowhere"), settings):
        for part, alone in zip(weights, expected, strict=True):
            assert part.keys() == alone.keys()
            assert all(torch.equal(part[name], tensor) for name, tensor in alone.items())


@pytest.mark.process
def test_ranks_exchange_json_bytes_and_errors(tmp_path):
    everything = [{"rank": rank, "text": "ü" * rank, "numbers": [0.1, float("inf")]} for rank in range(3)]
    errors = [
        ("BadInput", "learn.lr: write it", "learn.lr"),
        ("BadStep", "it is not finite", ""),
        ("OutsideError", "it is away", ""),
    ]
    expected = [everything, b"from 1", b"", {"sum": 4.5, "largest": 2.0}, *errors]
    assert on_ranks(3, tmp_path, telling) == [expected] * 3


def test_ranks_send_each_other_no_pickles():
    """Who reaches the port of a rank could run code in it."""
    folder = Path(ranks.__file__).parents[1]
    unsafe = re.compile(r"(all_gather|gather|scatter|broadcast|send|recv)_object|weights_only=False|pickle\.load")
    assert [file.name for file in folder.rglob("*.py") if unsafe.search(file.read_text())] == []


def test_passes_are_dealt_so_that_every_rank_has_as_many():
    contexts = [DistContext(rank, 3) for rank in range(3)]
    assert [each.deal("abcd") for each in contexts] == [
        [("a", True), ("d", True)],
        [("b", True), ("d", False)],
        [("c", True), ("d", False)],
    ]
    assert [each.deal("") for each in contexts] == [[], [], []]


def test_alone_every_sum_is_its_own():
    assert ALONE.totals({"a": 1.5}) == {"a": 1.5}
    assert ALONE.gather("x") == ["x"]
    np.testing.assert_equal(ALONE.sum(torch.ones(2)).numpy(), [1, 1])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_ranks_meet_where_the_first_one_listens(monkeypatch, host):
    """From the moment the address is known nobody else can listen there."""
    monkeypatch.setattr("ray.util.get_node_ip_address", lambda: host)
    stores: dict[int, dist.Store] = {}
    monkeypatch.setattr(ranks.dist, "init_process_group", lambda *_, rank, store, **__: stores.__setitem__(rank, store))
    monkeypatch.setattr(ranks, "init_device_mesh", lambda *_: None)
    first = RankActor.__new__(RankActor)
    place = asyncio.run(first.rendezvous())
    at = urlsplit(f"//{place}")
    with pytest.raises(OSError, match="in use"):
        socket.create_server((host, at.port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    with ThreadPoolExecutor() as pool:
        assert first._listener is not None
        joins = [
            pool.submit(ranks.join, rank, 2, place, "cpu", 10, None if rank else first._listener) for rank in range(2)
        ]
        assert [each.result().rank for each in joins] == [0, 1]
    stores[0].set("word", "heard")
    assert stores[1].get("word") == b"heard"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_ranks_that_meet_at_a_file_use_the_loopback_interface_alone(monkeypatch, tmp_path, device):
    """Whoever reaches their ports can change weights."""
    environment = {"GLOO_SOCKET_IFNAME": "ib0"} if device == "cpu" else {}
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(ranks.dist, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(ranks, "init_device_mesh", lambda *_: None)
    monkeypatch.setattr(ranks.dist, "TCPStore", lambda *_, **__: None)
    ranks.join(0, 2, "10.0.0.5:4000", device)
    assert environment.keys() <= {"GLOO_SOCKET_IFNAME"}
    ranks.join(0, 2, str(tmp_path / "ranks"), device)
    of_gloo = "ib0" if device == "cpu" else "lo"
    assert environment == {"GLOO_SOCKET_IFNAME": of_gloo, "NCCL_SOCKET_IFNAME": "lo"}, "what is stated stays"
