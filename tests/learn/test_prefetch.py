"""Weights that wait for their games: nobody has a second copy of them, neither Ray's store nor the driver."""

import asyncio
import sys
from types import SimpleNamespace

import pytest
import ray
import torch
from safetensors.torch import save_file

from tests.peaks import growth
from training.engines.chunks import cut, joined
from training.engines.pool import EnginePool
from training.errors import ProcessLost
from training.learn import prefetch
from training.learn.prefetch import RolloutPrefetcher


class Pool(EnginePool):
    """Notes what it is given to load."""

    def __init__(self):
        self.loaded = []

    async def load_chunks(self, chunks, version):
        self.loaded.append((version, [chunk async for chunk in chunks]))


def prefetcher(pool=None, **fields):
    """One that plays nothing."""
    made = RolloutPrefetcher.__new__(RolloutPrefetcher)
    made._context = SimpleNamespace(engine=pool)
    made._start, made._last, made.lag, made.played = 0, 10, 2, {}
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_an_evaluation_loads_the_present_weights_from_where_they_wait():
    """Handed out again they would be in Ray's store twice: beside those of lag + 1 steps."""
    pool = Pool()
    waiting = prefetcher(pool, staged={3: ["a", "b"], 4: ["c"]})
    assert asyncio.run(waiting.load_present(4))
    assert pool.loaded == [(4, ["c"])]
    assert not asyncio.run(waiting.load_present(5))
    assert pool.loaded == [(4, ["c"])]


def test_older_weights_are_fetched_as_they_are_written(monkeypatch):
    """Step 5 is learned, steps up to 6 are played; with a lag of 2, step 7 is played with the weights after step 4."""
    fetched = []
    monkeypatch.setattr(ray, "get", lambda reference: fetched.append(reference) or reference)
    waiting = prefetcher(played={6: ([], {})}, staged={4: ["a", "b"], 5: ["c"]})
    older = waiting.older(5)
    assert [*older] == [4]
    assert fetched == []
    for _ in range(2):
        chunks = older[4]()
        assert next(chunks) == "a"
        assert fetched == ["a"]
        assert [*chunks] == ["b"]
        fetched.clear()


def test_older_weights_that_are_gone_with_a_node_interrupt_the_run(monkeypatch):
    def gone(_):
        raise ray.exceptions.ObjectReconstructionFailedError("00" * 28)

    monkeypatch.setattr(ray, "get", gone)
    older = prefetcher(played={6: ([], {})}, staged={4: ["a"], 5: []}).older(5)
    with pytest.raises(ProcessLost, match="gone with the node that held them"):
        next(older[4]())


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_file_of_weights_goes_into_the_store_tensor_by_tensor(tmp_path, monkeypatch):
    weights = {f"weight.{number:02}": torch.full((2**20,), float(number)) for number in range(32)}  # 128 MiB
    save_file(weights, tmp_path / "weights")
    monkeypatch.setattr(ray, "put", lambda chunk: [(piece.name, len(piece.data)) for piece in chunk])
    monkeypatch.setattr(prefetch, "cut", lambda tensors: cut(tensors, size=2**23))
    put = []
    before, peak = growth(lambda: put.extend(prefetch.stored(tmp_path / "weights")))
    assert peak - before < 48 * 2**20
    assert [pair for chunk in put for pair in chunk] == [(name, 2**22) for name in weights]
    monkeypatch.setattr(ray, "put", lambda chunk: chunk)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in joined(prefetch.stored(tmp_path / "weights")))
