"""Two engines beside one: tokens sampled per second by a pool, each engine in a process of its own on one core.

Both pools get the same requests, more than their engines run at once (`RUNNING` each), so that every engine has the
same batch on both sides. Prompts differ, so that no prefix is shared.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from functools import partial
from typing import Any

from bench import alternate
from bench.alternate import Reading
from bench.clock import now
from bench.recorded_conversations import conditions
from training import bases
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.engines.base import SampleRequest, Sampling
from training.engines.pool import EnginePool
from training.seeding import rng

RUNNING, REQUESTS, PROMPT, REPLY = 8, 64, 128, 48


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return the comparison."""
    with processes.start(gpus=0):
        pools = [_pool(arguments, count) for count in (2, 1)]
        loop = asyncio.new_event_loop()
        work = _requests(arguments.seed)
        two, one = (partial(_sampled, loop, pool, work) for pool in pools)
        compared = alternate.alternate(two, one, arguments.rounds)
        for pool in pools:
            loop.run_until_complete(pool.close())
        loop.close()
    return {
        "unit": "tokens per second",
        "sides": {"a": "two engines", "b": "one engine"},
        **compared,
        "work": {"requests": REQUESTS, "prompt": PROMPT, "reply": REPLY, "running": RUNNING},
        "seed": arguments.seed,
        "conditions": conditions(arguments, 1),
    }


def _pool(arguments: Namespace, engines: int) -> EnginePool:
    options = ProcessOptions(count=engines, threads=1, cores=tuple((number,) for number in range(engines)))
    return EnginePool(
        arguments.engine, bases.resolve(arguments.model), options, max_running=RUNNING, cache_gib=0.5, window=1024
    )


def _requests(seed: int) -> list[SampleRequest]:
    draw, sampling = rng(seed, "prompts"), Sampling(max_tokens=REPLY)
    return [
        SampleRequest([draw.randrange(10, 250) for _ in range(PROMPT)], sampling, seed=number)
        for number in range(REQUESTS)
    ]


def _sampled(loop: asyncio.AbstractEventLoop, pool: EnginePool, work: list[SampleRequest]) -> Reading:
    async def ask() -> int:
        samples = await asyncio.gather(*(pool.sample(request) for request in work))
        return sum(len(sample.tokens) for sample in samples)

    began = now()
    tokens = loop.run_until_complete(ask())
    seconds = now() - began
    return Reading(tokens / seconds, {"sampling": seconds})


def line(result: dict[str, Any]) -> str:
    """Return the comparison in one line."""
    return f"two against one: {alternate.line(result, result['unit'])}"
