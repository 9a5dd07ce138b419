"""vLLM's own part of the engine: what a score reads."""

import asyncio

import pytest

from tests.toy_models import write_random_llama
from training import engines
from training.engines.base import SampleRequest, Sampling

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="vLLM is not installed: neither its CPU nor its GPU build")


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
