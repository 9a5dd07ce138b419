"""Sampling: Parley's rollout beside raw vLLM that holds the same conversations with the same number in flight.

The raw side steps vLLM's `LLMEngine` in a bare loop. It sends the same token prompts as Parley's players, in the order
of each conversation's turns, and samples the same number of tokens. Both sides request the log-probability of each
sampled token, which learning needs. Parley seeds every request; the raw side does not. The measurement compares sampled
tokens per second. Parley's side also does everything around the engine: games, rendering, tokenizing, parsing, traces.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from bench.alternate import Reading, alternate
from bench.recorded_conversations import ParleySampler, RecordedRequest, conditions, device, use_threads


class Raw:
    """vLLM alone."""

    def __init__(self, sampler: ParleySampler, dtype: str) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        cpu = device() == "cpu"
        cpu_options: dict[str, Any] = {"enable_chunked_prefill": False} if cpu else {}
        self.engine = LLMEngine.from_engine_args(
            EngineArgs(
                model=str(sampler.folder),
                dtype=dtype,
                max_num_seqs=sampler.lanes,
                max_num_batched_tokens=8192,
                kv_cache_memory_bytes=2**30,
                enforce_eager=cpu,
                enable_prefix_caching=True,
                disable_log_stats=True,
                seed=0,
                **cpu_options,
            )
        )
        self.started = 0

    def replay(self, conversations: Sequence[Sequence[RecordedRequest]], lanes: int) -> float:
        """Replay recorded conversations, `lanes` of them in flight; return the seconds."""
        waiting = [list(reversed(requests)) for requests in reversed(conversations)]
        running: dict[str, list[RecordedRequest]] = {}
        began = time.perf_counter()
        while waiting and len(running) < lanes:
            self._send(waiting.pop(), running)
        while running:
            for output in self.engine.step():
                if output.finished:
                    rest = running.pop(output.request_id)
                    if rest:
                        self._send(rest, running)
                    elif waiting:
                        self._send(waiting.pop(), running)
        return time.perf_counter() - began

    def _send(self, requests: list[RecordedRequest], running: dict[str, list[RecordedRequest]]) -> None:
        """Send the next request of a conversation; `requests` are its remaining ones, in reverse order."""
        from vllm import SamplingParams
        from vllm.inputs.engine import tokens_input
        from vllm.sampling_params import RequestOutputKind

        prompt, count = requests.pop()
        self.started += 1
        name = f"raw{self.started}"
        params = SamplingParams(
            temperature=1.0,
            max_tokens=count,
            ignore_eos=True,
            detokenize=False,
            logprobs=0,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        self.engine.add_request(name, tokens_input(list(prompt)), params)
        running[name] = requests


def main(arguments: Namespace) -> dict[str, Any]:
    """Return both sides' sampled tokens per second and the ratio."""
    threads = use_threads(arguments.threads)
    sampler = ParleySampler(arguments, 2 * arguments.lanes, arguments.lanes, "vllm")
    raw = Raw(sampler, arguments.dtype)
    recorded: list[list[RecordedRequest]] = []

    def ours() -> Reading:
        episodes, seconds = sampler.play()
        recorded[:] = [sampler.requests[scenario.id] for scenario in sampler.scenarios]
        if failed := [e.error for e in episodes if e.error]:
            raise RuntimeError(f"{len(failed)} conversations failed: {failed[0]}")
        return Reading(_tokens(recorded) / seconds, {"all": seconds})

    def theirs() -> Reading:
        raw.engine.reset_prefix_cache()  # Parley's side begins with an empty cache, too
        seconds = raw.replay(recorded, arguments.lanes)
        return Reading(_tokens(recorded) / seconds, {"all": seconds})

    comparison = alternate(ours, theirs, arguments.rounds)
    sampler.close()
    counts = {"conversations": len(recorded), "requests": sum(map(len, recorded)), "tokens": _tokens(recorded)}
    return {
        "measurement": "sampling",
        "unit": "sampled tokens per second",
        "sides": {
            "a": "Parley's rollout over vLLM",
            "b": "raw vLLM, same prompts, turn dependency and number in flight",
        },
        **comparison,
        "work": {**counts, "lanes": arguments.lanes},
        "where": _where(comparison),
        "conditions": conditions(arguments, threads),
    }


def _tokens(recorded: Sequence[Sequence[RecordedRequest]]) -> int:
    return sum(count for requests in recorded for _, count in requests)


def _where(comparison: dict[str, Any]) -> dict[str, float]:
    """Return raw vLLM's median seconds, and how many more Parley's side took (negative within noise)."""
    ours, theirs = comparison["a"]["seconds"]["all"], comparison["b"]["seconds"]["all"]
    return {"vllm_s": theirs, "around_it_s": ours - theirs}


def show(result: dict[str, Any]) -> str:
    """Return the ratio in a line."""
    return f"{result['a']['median']:.1f} against {result['b']['median']:.1f} {result['unit']}: {result['ratio']:.2f}"
