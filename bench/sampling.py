"""Sampling: Parley's rollout beside raw vLLM that holds the same conversations with the same number in flight.

The raw side is vLLM's `LLMEngine`, stepped by a bare loop: it is given the very token prompts that Parley's players
sent, one turn of a conversation after the other, and samples as many tokens. Both ask for the log-probability of each
sampled token, which learning needs. Parley seeds every request, the raw side does not. What is compared is sampled
tokens a second; what Parley adds is everything around the engine: games, rendering, tokenizing, parsing, traces.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from bench.alternate import Reading, alternate
from bench.recorded_conversations import Ask, Talks, conditions, device, use_threads


class Raw:
    """vLLM alone."""

    def __init__(self, talks: Talks, dtype: str) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        cpu = device() == "cpu"
        more: dict[str, Any] = {"enable_chunked_prefill": False} if cpu else {}
        self.engine = LLMEngine.from_engine_args(
            EngineArgs(
                model=str(talks.folder),
                dtype=dtype,
                max_num_seqs=talks.lanes,
                max_num_batched_tokens=8192,
                kv_cache_memory_bytes=2**30,
                enforce_eager=cpu,
                enable_prefix_caching=True,
                disable_log_stats=True,
                seed=0,
                **more,
            )
        )
        self.started = 0

    def hold(self, talks: Sequence[Sequence[Ask]], lanes: int) -> float:
        """Hold recorded conversations, `lanes` of them in flight; return the seconds."""
        waiting = [list(reversed(talk)) for talk in reversed(talks)]
        running: dict[str, list[Ask]] = {}
        began = time.perf_counter()
        while waiting and len(running) < lanes:
            self._ask(waiting.pop(), running)
        while running:
            for output in self.engine.step():
                if output.finished:
                    rest = running.pop(output.request_id)
                    if rest:
                        self._ask(rest, running)
                    elif waiting:
                        self._ask(waiting.pop(), running)
        return time.perf_counter() - began

    def _ask(self, talk: list[Ask], running: dict[str, list[Ask]]) -> None:
        from vllm import SamplingParams
        from vllm.inputs.engine import tokens_input
        from vllm.sampling_params import RequestOutputKind

        prompt, count = talk.pop()
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
        running[name] = talk


def main(arguments: Namespace) -> dict[str, Any]:
    """Return both sides' sampled tokens a second and the ratio."""
    threads = use_threads(arguments.threads)
    talks = Talks(arguments, 2 * arguments.lanes, arguments.lanes, "vllm")
    raw = Raw(talks, arguments.dtype)
    recorded: list[list[Ask]] = []

    def ours() -> Reading:
        episodes, seconds = talks.play()
        recorded[:] = [talks.asked[scenario.id] for scenario in talks.scenarios]
        if failed := [e.error for e in episodes if e.error]:
            raise RuntimeError(f"{len(failed)} conversations failed: {failed[0]}")
        return Reading(_tokens(recorded) / seconds, {"all": seconds})

    def theirs() -> Reading:
        raw.engine.reset_prefix_cache()  # as Parley's side begins
        seconds = raw.hold(recorded, arguments.lanes)
        return Reading(_tokens(recorded) / seconds, {"all": seconds})

    found = alternate(ours, theirs, arguments.rounds)
    talks.close()
    counts = {"conversations": len(recorded), "requests": sum(map(len, recorded)), "tokens": _tokens(recorded)}
    return {
        "measurement": "sampling",
        "unit": "sampled tokens a second",
        "sides": {
            "a": "Parley's rollout over vLLM",
            "b": "raw vLLM, same prompts, turn dependency and number in flight",
        },
        **found,
        "work": {**counts, "lanes": arguments.lanes},
        "where": _where(found),
        "conditions": conditions(arguments, threads),
    }


def _tokens(recorded: Sequence[Sequence[Ask]]) -> int:
    return sum(count for talk in recorded for _, count in talk)


def _where(found: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of a round that are vLLM's own, and those around it."""
    ours, theirs = found["a"]["seconds"]["all"], found["b"]["seconds"]["all"]
    return {"vllm_s": theirs, "around_it_s": ours - theirs}


def show(result: dict[str, Any]) -> str:
    """Return the ratio in a line."""
    return f"{result['a']['median']:.1f} against {result['b']['median']:.1f} {result['unit']}: {result['ratio']:.2f}"
