"""vLLM's own part of the engine: what a score reads, and an engine that is split."""

import asyncio
import re
from pathlib import Path

import psutil
import pytest

from tests.toy_models import write_random_llama
from training import engines
from training.engines.base import SampleRequest, Sampling

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="vLLM is not installed: neither its CPU nor its GPU build")
HAS_AVX512 = "avx512f" in Path("/proc/cpuinfo").read_text("utf-8")


def test_a_score_reads_no_more_of_a_known_prefix_than_its_last_block(tmp_path, monkeypatch):
    engine = engines.make("vllm", write_random_llama(tmp_path / "model"), max_running=8, cache_gib=0.05)
    from training.engines.local.vllm_core import VllmCore

    outputs, score = [], VllmCore._score
    monkeypatch.setattr(VllmCore, "_score", staticmethod(lambda output: outputs.append(output) or score(output)))
    prefix = [3 + 7 * at % 37 for at in range(380)]
    names = [[4, 5, 6, 4, 5, 6], [4, 5, 6, 4, 5, 7], [8]]  # beyond token 384, where blocks of 16 to 128 tokens end

    async def main():
        await engine.sample(SampleRequest(prefix, Sampling(max_tokens=2), seed=1))
        first = await engine.score(prefix, names)
        second = await engine.score(prefix, names)
        await engine.close()
        return first, second

    first, second = asyncio.run(main())
    assert len(outputs) == 6
    # the token before the continuation is always read, also where a block behind it is known
    assert all(256 <= output.num_cached_tokens < len(prefix) for output in outputs)
    assert sorted(len(output.prompt_logprobs) for output in outputs) == [2, 2, 7, 7, 7, 7]  # vLLM's None comes first
    assert second == pytest.approx(first, abs=1e-4)


OPTIONS = {"max_running": 8, "cache_gib": 0.05}
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (where Linux shows its names)


async def test_a_split_engine_samples_as_a_whole_one(tmp_path):
    """Greedy and seeded, with top-k and top-p, before and after new weights."""
    folder, other = write_random_llama(tmp_path / "model"), write_random_llama(tmp_path / "other", seed=1)
    whole, split = engines.make("vllm", folder, **OPTIONS), engines.make("vllm", folder, tensor_parallel=2, **OPTIONS)
    kinds = ({}, {"temperature": 0.0}, {"temperature": 0.7, "top_k": 5}, {"top_p": 0.8})
    asked = [
        SampleRequest([3 + (i + 7 * at) % 37 for at in range(20 + i)], Sampling(max_tokens=30, **kind), seed=i)
        for i in range(6)
        for kind in kinds
    ]

    async def compare():
        all_samples = [await asyncio.gather(*map(engine.sample, asked)) for engine in (whole, split)]
        for expected, sample in zip(*all_samples, strict=True):
            assert sample.tokens == expected.tokens
            assert sample.logprobs == pytest.approx(expected.logprobs, abs=1e-4)
            assert sample.discarded == pytest.approx(expected.discarded, abs=1e-4)
            assert sample.version == expected.version
        assert any(sample.discarded > 0.01 for sample in all_samples[0])
        return [sample.tokens for sample in all_samples[0]]

    try:
        assert len(split.workers) == 2
        before = await compare()
        for engine in (whole, split):
            await engine.load_weights(other, 5)
        assert await compare() != before
        assert not listening_elsewhere(split.workers)
        memory = shared_memory(split.workers)
        assert bool(memory) == HAS_AVX512, "vLLM has no such memory without it"
        assert not any((SHARED_MEMORY / name).exists() for name in memory), "it would be left behind by a kill"
    finally:
        await whole.close()
        await split.close()
    assert not [pid for pid in split.workers if psutil.pid_exists(pid)]


def shared_memory(pids):
    """The names of the memory by which these workers exchange tensors."""
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids)
    return set(re.findall(rf"{SHARED_MEMORY}/(vllm_dist_\S+)", maps))


def listening_elsewhere(pids):
    """The addresses, other than of the loopback interface, at which processes wait for connections."""
    sockets = [each for pid in pids for each in psutil.Process(pid).net_connections("inet")]
    waiting = [each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN]
    return [ip for ip in waiting if ip not in ("127.0.0.1", "::1", "::ffff:127.0.0.1")]
