"""Engines in a process of their own, as a Ray actor: what `EnginePool` talks to.

The first, whose key is empty, is the pool's own; `open_model` adds those of other models, and `embed` the frozen models
of classifiers. They live on a thread with an event loop of its own, so that the process answers while it computes. An
engine whose model is split has worker processes, and this one ends when one of them does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Coroutine, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.cluster.watch import is_running
from training.cluster.worker import Heartbeat, RemoteError, Started, Worker, ignore_expected_warnings, skip_unused
from training.engines.adapters import AdapterEngine
from training.engines.base import Sample, SampleRequest
from training.errors import BadInput, EngineError, ParleyError

if TYPE_CHECKING:
    from training.engines.chunks import Chunk
    from training.engines.local.embedding import Embedder
    from training.engines.pooling import Pooling

log = logging.getLogger(__name__)

LOADING = "loading weights"


class EngineActor(Worker):
    """Engines by key behind Ray."""

    raises = EngineError

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._engines: dict[str, AdapterEngine] = {}
        self._embedders: dict[str, Embedder] = {}
        self._embedding = asyncio.Lock()  # a model takes all cores for one request as for many
        self._chunks_taken = self._turns_read = 0
        self._inbox: queue.Queue[Chunk | RemoteError | None] = queue.Queue(maxsize=2)
        self._awaits_chunk = False
        self._loaded: asyncio.Task[RemoteError | None] | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run_loop, name="engine", daemon=True).start()

    @property
    def steps(self) -> int:
        """See `Worker.steps`."""
        engines = list(self._engines.values())  # read once: the process opens and closes them meanwhile
        return self._chunks_taken + self._turns_read + sum(int(getattr(engine, "steps", 0)) for engine in engines)

    @property
    def doing(self) -> str:
        """See `Worker.doing`; an engine that awaits a chunk waits for the ranks, or for engines that finish replies."""
        awaits = self._awaits_chunk
        return next((each for each in self._activities if not (awaits and each == LOADING)), "")

    @property
    def workers(self) -> list[int]:
        """See `Worker.workers`."""
        return [pid for engine in list(self._engines.values()) for pid in getattr(engine, "workers", ())]

    async def heartbeat(self) -> Heartbeat:
        """See `Worker.heartbeat`."""
        self._check_workers()
        return await super().heartbeat()

    async def start(self, name: str, model: str | Path, options: Mapping[str, Any]) -> Started | RemoteError:
        """Make the pool's own engine."""
        opened = await self.open_model("", name, model, options)
        return opened if isinstance(opened, RemoteError) else self._started(opened)

    async def open_model(self, key: str, name: str, model: str | Path, options: Mapping[str, Any]) -> int | RemoteError:
        """Make an engine; return its window."""

        async def make() -> AdapterEngine:
            import torch

            from training import engines

            skip_unused()
            if self._threads:
                torch.set_num_threads(self._threads)
            torch.set_flush_denormal(True)  # as in the driver's process
            ignore_expected_warnings()
            return engines.make(name, model, cores=self._cores, **options)

        engine = await self._run("loading the model", make())
        if isinstance(engine, RemoteError):
            return _on_node(engine.error)
        self._engines[key] = engine
        return int(getattr(engine, "window", 0))

    async def close_model(self, key: str) -> None:
        """End an engine; do nothing if there is none."""
        if engine := self._engines.pop(key, None):
            await self._run("closing a model", engine.close())

    async def sample(self, key: str, request: SampleRequest) -> Sample | RemoteError:
        """Sample one continuation."""
        sample: Sample | RemoteError = await self._run("sampling", self._engines[key].sample(request))
        return sample

    async def score(
        self, key: str, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str
    ) -> list[float] | RemoteError:
        """Score continuations."""
        call = self._engines[key].score(prefix, continuations, adapter)
        scores: list[float] | RemoteError = await self._run("scoring", call)
        return scores

    async def embed(
        self, base: str, device: str, texts: Sequence[str], pooling: Pooling, dialogues: Sequence[Hashable] | None
    ) -> Any:
        """Embed turns; the first request for a model loads it."""

        def count(_done: int, _total: int) -> None:
            self._turns_read += 1

        async def embedded() -> Any:
            async with self._embedding:
                if base not in self._embedders:
                    self._embedders[base] = await asyncio.to_thread(_embedder, base, device)
                work = asyncio.to_thread(self._embedders[base].embed, texts, [pooling], dialogues, count)
                return (await work)[pooling]

        states = await self._run("labelling", embedded())
        return _on_node(states.error) if isinstance(states, RemoteError) else states

    async def load_adapters(self, key: str, adapters: Mapping[str, Path]) -> RemoteError | None:
        """Replace the adapters."""
        failure: RemoteError | None = await self._run("loading adapters", self._engines[key].load_adapters(adapters))
        return failure

    async def load_folder(self, key: str, folder: Path) -> RemoteError | None:
        """Replace the weights by those of a folder."""
        failure: RemoteError | None = await self._run(LOADING, self._engines[key].load_weights(folder))
        return failure

    async def begin_weights(self, version: int | None) -> None:
        """Await weights of the pool's own engine: they come by `take`, and `end_weights` says that these were all."""
        from training.engines.chunks import joined

        self._inbox = queue.Queue(maxsize=2)
        loading = self._engines[""].load_weights(joined(self._received(self._inbox)), version)
        self._loaded = asyncio.create_task(self._run(LOADING, loading))

    async def take(self, chunk: Chunk) -> RemoteError | None:
        """Take the next chunk of weights; wait while the engine has not read those before it."""
        return await self._put(chunk)

    async def end_weights(self, failure: RemoteError | None = None) -> RemoteError | None:
        """Return when the engine has the weights; with a `failure`, the rest of them will not come."""
        if refused := await self._put(failure):
            return refused
        assert self._loaded is not None
        return await self._loaded

    async def _run(self, doing: str, call: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the engine's thread; see `_outcome`."""
        work: Future[Any] = asyncio.run_coroutine_threadsafe(call, self._loop)
        outcome = await self._outcome(doing, work)
        if isinstance(outcome, RemoteError):
            self._check_workers()
        return outcome

    def _gpu_bytes(self) -> int:
        engines = list(self._engines.values())
        return super()._gpu_bytes() + sum(int(getattr(engine, "gpu_bytes", 0)) for engine in engines)

    def _check_workers(self) -> None:
        """End the process if a worker of one of its engines has: its requests are then asked of another engine."""
        for pid in self.workers:
            if not is_running(pid):
                log.error("the worker %d of this engine died, and with it the engine", pid)
                os._exit(1)

    async def _put(self, chunk: Chunk | RemoteError | None) -> RemoteError | None:
        """Hand a chunk to the engine; return why it can take no more, if it has failed."""
        loaded = self._loaded
        assert loaded is not None
        while True:
            if loaded.done():
                early = EngineError("the engine took its weights for complete before all had come")
                return loaded.result() or RemoteError(early)
            try:
                self._inbox.put_nowait(chunk)
            except queue.Full:
                await asyncio.sleep(0.005)
            else:
                self._chunks_taken += 1
                return None

    def _received(self, inbox: queue.Queue[Chunk | RemoteError | None]) -> Iterator[Chunk]:
        while True:
            self._awaits_chunk = True
            try:
                chunk = inbox.get()
            finally:
                self._awaits_chunk = False
            if chunk is None:
                return
            if isinstance(chunk, RemoteError):
                raise chunk.error
            yield chunk

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


def _embedder(base: str, device: str) -> Embedder:
    from training.engines.local.embedding import Embedder

    return Embedder(base, device)


def _on_node(error: ParleyError) -> RemoteError:
    """Name the node on wrong input: only there may it be wrong, as where a model's folder is missing."""
    if isinstance(error, BadInput):
        error = BadInput(f"{error.why} (on node {os.uname().nodename})", error.where)
    return RemoteError(error)
