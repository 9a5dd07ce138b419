"""One rank and several learn the same: over gloo, with adapters and with all weights."""

import sys

import numpy as np
import pytest
import torch

from tests.learn.rank_work import STEPS, absent, failing, learning, loading, on_ranks
from tests.toy_models import write_random_llama
from training.learn.ranks import ALONE, DistContext

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


def close(first, second, besides=()):
    """Equal to a twenty-thousandth of each tensor's largest number; the parts `besides` are not compared."""
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        if not any(part in name for part in besides):
            difference = (second[name] - tensor).abs().max().item()
            assert difference <= 5e-5 * max(tensor.abs().max().item(), 1e-3), name


@pytest.mark.process
@pytest.mark.parametrize("world", [2, 3])
def test_several_ranks_learn_what_one_learns(base, tmp_path, world):
    cases = [*CASES.values()]
    several = on_ranks(world, tmp_path, learning, base, tmp_path, cases)
    for number, alone in enumerate(learning(ALONE, base, tmp_path, cases)):
        parts = [part[number] for part in several]
        for part in parts:
            close(alone["weights"], part["weights"])
            close(alone["moments"], part["moments"])
            close(alone["critic"], part["critic"], besides=(".net.", ".last."))
        for step in range(STEPS):
            found = parts[0]["metrics"][step]
            assert found.keys() == alone["metrics"][step].keys()
            for name, value in alone["metrics"][step].items():
                digits = ADAM if step and name.startswith(("value_loss", "critic")) else 1e-5
                assert found[name] == pytest.approx(value, rel=digits, abs=1e-6), name
            assert sum(len(part["read"][step]) for part in parts) == len(alone["read"][step])


@pytest.mark.process
@pytest.mark.parametrize("how", ["number", "stop"])
def test_what_one_rank_raises_all_raise_and_nothing_is_learned(base, tmp_path, how):
    wanted = {"number": "BadStep: the loss is not finite", "stop": "StopRequested: asked"}[how]
    assert on_ranks(2, tmp_path, failing, base, tmp_path, 1, how) == [(wanted, True)] * 2


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_rank_loads_its_shard_and_one_tensor_at_a_time(tmp_path):
    base = write_random_llama(tmp_path / "model", width=512, layers=10, intermediate_size=4096)
    size = (base / "model.safetensors").stat().st_size  # of 90 tensors, the largest 8 MiB
    assert size > 280e6
    # all weights; with a frozen reference too; frozen weights with 1 MB of adapters
    cases = [{"lora": None, "kl": "none", "kl_measured": False}, {"lora": None}, {"lora": {"rank": 4}}]
    for loaded in on_ranks(2, tmp_path, loading, str(base), cases):
        for (peak, own), shards in zip(loaded, (1, 2, 1), strict=True):
            assert 0.49 * size < own < 0.51 * size
            assert peak < shards * own + 0.15 * size


@pytest.mark.process
@pytest.mark.parametrize("settings", [{"lora": None}, {"lora": {"rank": 4}}], ids=str)
def test_a_rank_without_the_models_files_gets_its_rows_from_one_that_has_them(base, tmp_path, settings):
    expected = absent(ALONE, base, "", settings)
    for found in on_ranks(3, tmp_path, absent, base, str(tmp_path / "nowhere"), settings):
        for part, alone in zip(found, expected, strict=True):
            assert part.keys() == alone.keys()
            assert all(torch.equal(part[name], tensor) for name, tensor in alone.items())


def test_passes_are_dealt_so_that_every_rank_has_as_many():
    ranks = [DistContext(rank, 3) for rank in range(3)]
    assert [r.deal("abcd") for r in ranks] == [
        [("a", True), ("d", True)],
        [("b", True), ("d", False)],
        [("c", True), ("d", False)],
    ]
    assert [r.deal("") for r in ranks] == [[], [], []]


@pytest.mark.parametrize("size, most, limit", [(100, 64, 34), (1000, 64, 64), (1, 64, 1)])
def test_work_that_fits_one_pass_is_cut_for_all_ranks(size, most, limit):
    assert DistContext(0, 3).limit(size, most) == limit
    assert ALONE.limit(size, most) == min(most, size)


def test_alone_every_sum_is_its_own():
    assert ALONE.totals({"a": 1.5}) == {"a": 1.5}
    assert ALONE.gather("x") == ["x"]
    np.testing.assert_equal(ALONE.sum(torch.ones(2)).numpy(), [1, 1])
