"""What a process with engines says that it does."""

import asyncio
import math
import threading
import time

import torch

from training.engines.actor import EngineActor
from training.engines.chunks import cut


class Slow:
    """An engine that takes its time for each tensor, until it `may_go_on`."""

    steps = 0

    def __init__(self):
        self.may_go_on = threading.Event()

    async def load_weights(self, weights, version):
        for _ in weights:
            self.may_go_on.wait(10.0)


async def until_doing(actor, expected):
    end = time.monotonic() + 5.0
    while (await actor.heartbeat()).doing != expected:
        assert time.monotonic() < end, expected
        await asyncio.sleep(0.01)


async def test_an_engine_that_awaits_the_next_chunk_of_weights_does_nothing_itself():
    """Others may finish replies of any length first; one that reads a chunk has to make progress."""
    actor, engine = EngineActor("engine 0", math.inf), Slow()  # else its lease ends the process of the tests
    actor._engines[""] = engine
    [chunk] = cut([("a", torch.ones(3))])
    await actor.begin_weights(1)
    await until_doing(actor, "")
    await actor.take(chunk)
    await until_doing(actor, "loading weights")
    engine.may_go_on.set()
    await until_doing(actor, "")
    assert await actor.end_weights() is None
    assert (await actor.heartbeat()).doing == ""
