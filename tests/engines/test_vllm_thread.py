"""The thread that owns vLLM, with a fake vLLM: every request is answered, even if the engine fails."""

import asyncio
import dataclasses
import sys
import threading
from types import ModuleType

import pytest

from training.engines.base import EngineOptions, Sample, SampleRequest, Sampling
from training.engines.local import vllm
from training.errors import EngineError

REQUEST = SampleRequest([1, 2], Sampling(), 0)
SAMPLE = Sample((3,), (0.0,), "length")


class Core:
    """What of `VllmCore` the thread calls; a step ends once `go` is set."""

    window, workers, gpu_bytes = 64, (), 0
    reloaded = ()

    def __init__(self, *_, choices):
        self.choices = choices
        self.stepping, self.go = threading.Event(), threading.Event()
        self.running, self.added = [], []
        Core.last = self

    def add(self, name, request, room):
        self.running.append(name)
        self.added.append(name)

    def reload(self, weights, version):
        self.reloaded = (*self.reloaded, (version, len(self.added)))

    def step(self):
        self.stepping.set()
        assert self.go.wait(20)
        finished, self.running = [(name, SAMPLE) for name in self.running], []
        return finished

    def abort(self, names):
        raise RuntimeError("vLLM is gone")

    def shutdown(self):
        self.running.clear()


@pytest.fixture
def engine(monkeypatch):
    module = ModuleType("training.engines.local.vllm_core")
    module.VllmCore = Core
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(vllm, "SETTINGS", {})
    made = vllm.VllmEngine("model")
    yield made
    Core.last.go.set()
    asyncio.run(made.close())


def test_choices_are_refused_by_an_engine_that_was_not_made_for_them(engine):
    limited = dataclasses.replace(REQUEST, stop_token_ids=(2,), choices=((5, 2), (6, 2)))
    assert not Core.last.choices
    with pytest.raises(EngineError, match="made without the option `choices`"):
        asyncio.run(engine.sample(limited))
    assert Core.last.running == []


async def begun(engine):
    """A request that vLLM is at work on."""
    task = asyncio.create_task(engine.sample(REQUEST))
    assert await asyncio.to_thread(Core.last.stepping.wait, 20)
    return task


async def refused(*tasks):
    """Why each was not answered."""
    errors = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    assert all(isinstance(error, EngineError) for error in errors), errors
    return [str(error) for error in errors]


async def test_what_is_asked_is_answered(engine):
    Core.last.go.set()
    assert await asyncio.wait_for(engine.sample(REQUEST), 20) == SAMPLE


async def test_what_is_asked_while_the_engine_closes_is_refused(engine):
    first = await begun(engine)
    waits = asyncio.create_task(engine.load_weights([]))
    await asyncio.sleep(0)
    closing = asyncio.create_task(engine.close())
    await asyncio.sleep(0)
    late = asyncio.create_task(engine.sample(REQUEST))
    await asyncio.sleep(0)
    assert late.done()
    Core.last.go.set()
    assert await refused(late, waits) == ["the engine is closed", "the engine was closed"]
    assert await asyncio.wait_for(first, 20) == SAMPLE
    await closing
    await engine.close()
    assert await refused(engine.sample(REQUEST)) == ["the engine is closed"]


async def test_weights_wait_for_the_replies_that_are_decoded_and_not_for_those_that_are_not(engine):
    most = EngineOptions().max_running
    first = await begun(engine)
    others = [asyncio.create_task(engine.sample(REQUEST)) for _ in range(2 * most)]
    await asyncio.sleep(0)
    loads = [asyncio.create_task(engine.load_weights([], version)) for version in (1, 2)]
    await asyncio.sleep(0)
    Core.last.go.set()
    await asyncio.wait_for(asyncio.gather(first, *others, *loads), 20)
    assert Core.last.reloaded == ((1, 1), (2, 1)), "only the first request had begun"
    assert len(Core.last.added) == 2 * most + 1


async def test_no_more_requests_are_decoded_than_the_engine_was_made_for(engine):
    most, step, largest = EngineOptions().max_running, Core.last.step, []

    def counted():
        largest.append(len(Core.last.running))
        return step()

    Core.last.step = counted
    first = await begun(engine)
    others = [asyncio.create_task(engine.sample(REQUEST)) for _ in range(2 * most)]
    await asyncio.sleep(0)
    Core.last.go.set()
    await asyncio.wait_for(asyncio.gather(first, *others), 20)
    assert max(largest) == most


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_dies_leaves_nobody_waiting(engine):
    given_up = await begun(engine)
    given_up.cancel()
    await asyncio.sleep(0)
    waits = [asyncio.create_task(engine.sample(REQUEST)) for _ in range(3)]
    await asyncio.sleep(0)
    Core.last.running.clear()  # nothing finishes: the one who gave up is still among the engine's own
    Core.last.go.set()
    assert await refused(*waits) == ["the engine was closed"] * 3
