"""One engine in a process of its own, as a Ray actor: what `EnginePool` talks to.

The engine lives on a thread with an event loop of its own, so that the process answers while it computes.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.cluster.worker import Raised, Started, Worker, ignore_expected_warnings
from training.engines.adapters import AdapterEngine
from training.engines.base import Sample, SampleRequest
from training.errors import BadInput, EngineError, ParleyError

if TYPE_CHECKING:
    from training.engines.chunks import Chunk


class EngineActor(Worker):
    """One engine behind Ray."""

    raises = EngineError

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._engine: AdapterEngine | None = None
        self._chunks_taken = 0
        self._inbox: queue.Queue[Chunk | Raised | None] = queue.Queue(maxsize=2)
        self._loaded: asyncio.Task[Raised | None] | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._live, name="engine", daemon=True).start()

    @property
    def steps(self) -> int:
        """See `Worker.steps`."""
        return self._chunks_taken + int(getattr(self._engine, "steps", 0))

    async def start(self, name: str, model: str | Path, options: Mapping[str, Any]) -> Started | Raised:
        """Make the engine."""

        async def make() -> AdapterEngine:
            import torch

            from training import engines

            if self._threads:
                torch.set_num_threads(self._threads)
            torch.set_flush_denormal(True)  # as in the driver's process
            ignore_expected_warnings()
            return engines.make(name, model, **options)

        engine = await self._run("loading the model", make())
        if isinstance(engine, Raised):
            return _on_node(engine.error)
        self._engine = engine
        return self._started(getattr(engine, "window", 0))

    async def sample(self, request: SampleRequest) -> Sample | Raised:
        """Sample one continuation."""
        sample: Sample | Raised = await self._run("sampling", self._ready.sample(request))
        return sample

    async def score(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str
    ) -> list[float] | Raised:
        """Score continuations."""
        scores: list[float] | Raised = await self._run("scoring", self._ready.score(prefix, continuations, adapter))
        return scores

    async def load_adapters(self, adapters: Mapping[str, Path]) -> Raised | None:
        """Replace the adapters."""
        failure: Raised | None = await self._run("loading adapters", self._ready.load_adapters(adapters))
        return failure

    async def begin_weights(self) -> None:
        """Await weights: they come in chunks by `take`, and `end_weights` says that these were all."""
        from training.engines.chunks import joined

        self._inbox = queue.Queue(maxsize=2)
        loading = self._ready.load_weights(joined(_received(self._inbox)))
        self._loaded = asyncio.create_task(self._run("loading weights", loading))

    async def take(self, chunk: Chunk) -> Raised | None:
        """Take the next chunk of weights; wait while the engine has not read those before it."""
        return await self._put(chunk)

    async def end_weights(self, failure: Raised | None = None) -> Raised | None:
        """Return when the engine has the weights; with a `failure`, the rest of them will not come."""
        if refused := await self._put(failure):
            return refused
        assert self._loaded is not None
        return await self._loaded

    @property
    def _ready(self) -> AdapterEngine:
        assert self._engine is not None
        return self._engine

    async def _run(self, doing: str, call: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the engine's thread; see `_outcome`."""
        work: Future[Any] = asyncio.run_coroutine_threadsafe(call, self._loop)
        return await self._outcome(doing, work)

    async def _put(self, chunk: Chunk | Raised | None) -> Raised | None:
        """Hand a chunk to the engine; return why it can take no more, if it has failed."""
        loaded = self._loaded
        assert loaded is not None
        while True:
            if loaded.done():
                early = EngineError("the engine took its weights for complete before all had come")
                return loaded.result() or Raised(early)
            try:
                self._inbox.put_nowait(chunk)
            except queue.Full:
                await asyncio.sleep(0.005)
            else:
                self._chunks_taken += 1
                return None

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


def _received(inbox: queue.Queue[Chunk | Raised | None]) -> Iterator[Chunk]:
    while (chunk := inbox.get()) is not None:
        if isinstance(chunk, Raised):
            raise chunk.error
        yield chunk


def _on_node(error: ParleyError) -> Raised:
    """Name the node on wrong input: only there may it be wrong, as where a model's folder is missing."""
    if isinstance(error, BadInput):
        error = BadInput(f"{error.why} (on node {os.uname().nodename})", error.where)
    return Raised(error)
