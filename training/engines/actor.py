"""One engine in a process of its own, as a Ray actor: what `EnginePool` talks to.

The engine lives on a thread with an event loop of its own, so that the process answers while it computes. The process
ends by itself when its driver has not been heard for a lease. Errors raised on purpose are returned as `Failure`, so
that whatever Ray raises means that the process is gone or broken.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import warnings
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.cluster.member import Lease, device_of_process, gpu_bytes, pin, rss_bytes
from training.engines.base import Engine, Sample, SampleRequest
from training.errors import BadInput, EngineError, ParleyError, boundary

if TYPE_CHECKING:
    from training.engines.chunks import Chunk


@dataclass(frozen=True, slots=True)
class Failure:
    """An error raised on purpose inside the actor: `BadInput` with the place, or else an `EngineError`."""

    why: str
    where: str = ""
    bad_input: bool = False

    @classmethod
    def of(cls, error: ParleyError) -> Failure:
        """Return the failure that tells of an error."""
        if isinstance(error, BadInput):
            return cls(error.why, error.where, bad_input=True)
        return cls(str(error))

    def error(self) -> ParleyError:
        """Return the error to raise on the other side."""
        return BadInput(self.why, self.where) if self.bad_input else EngineError(self.why)


@dataclass(frozen=True, slots=True)
class Beat:
    """What an actor answers at once, whatever its engine does: `steps` grows while the engine gets on."""

    steps: int
    running: int
    rss_bytes: int
    gpu_bytes: int


@dataclass(frozen=True, slots=True)
class Started:
    """An engine that is ready: its longest prompt and reply together, and where it runs."""

    window: int
    node: str
    pid: int
    device: str


class EngineActor:
    """One engine behind Ray. `lease_s`: the process ends when no `beat` has come for so long.

    `home` is the driver's PARLEY_HOME, which the nodes of a joined cluster do not know.
    """

    def __init__(self, lease_s: float, cores: Sequence[int] = (), threads: int = 0, home: str | None = None) -> None:
        if home:
            os.environ["PARLEY_HOME"] = home
        self._lease = Lease(lease_s, "engine")
        self._threads = threads
        if cores:
            pin(cores)
        self._engine: Engine | None = None
        self._running = 0
        self._steps = 0
        self._inbox: queue.Queue[Chunk | Failure | None] = queue.Queue(maxsize=2)
        self._loaded: Future[Any] | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._live, name="engine", daemon=True).start()

    async def start(self, name: str, model: str | Path, options: Mapping[str, Any]) -> Started | Failure:
        """Make the engine."""

        async def make() -> Engine:
            import torch

            from training import engines

            if self._threads:
                torch.set_num_threads(self._threads)
            torch.set_flush_denormal(True)  # as in the driver's process
            for expected in ("The given NumPy array is not writable", "The value of the smallest subnormal"):
                warnings.filterwarnings("ignore", expected)  # weights are only read; denormal numbers are zero
            with boundary(into=EngineError):
                return engines.make(name, model, **options)

        engine = await self._call(make())
        if isinstance(engine, Failure):
            return engine
        self._engine = engine
        return Started(getattr(engine, "window", 0), os.uname().nodename, os.getpid(), device_of_process())

    async def sample(self, request: SampleRequest) -> Sample | Failure:
        """Sample one continuation."""
        return await self._counted(self._ready.sample(request))

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float] | Failure:
        """Score continuations."""
        return await self._counted(self._ready.score(prefix, continuations))

    async def begin_weights(self) -> None:
        """Await weights: they come in chunks by `take`, and `end_weights` says that these were all."""
        from training.engines.chunks import joined

        self._inbox = queue.Queue(maxsize=2)
        weights = joined(self._chunks(self._inbox))
        self._loaded = asyncio.run_coroutine_threadsafe(self._ready.load_weights(weights), self._loop)

    async def take(self, chunk: Chunk) -> Failure | None:
        """Take the next chunk of weights; wait while the engine has not read those before it."""
        return await self._put(chunk)

    async def end_weights(self, failure: Failure | None = None) -> Failure | None:
        """Return when the engine has the weights; with a `failure`, the rest of them will not come."""
        if refused := await self._put(failure):
            return refused
        assert self._loaded is not None
        return await _outcome(self._loaded)

    async def beat(self) -> Beat:
        """Renew the lease and answer how far the engine is."""
        self._lease.renew()
        return Beat(self._steps + getattr(self._engine, "steps", 0), self._running, rss_bytes(), gpu_bytes())

    @property
    def _ready(self) -> Engine:
        assert self._engine is not None
        return self._engine

    async def _counted(self, call: Coroutine[Any, Any, Any]) -> Any:
        self._running += 1
        try:
            return await self._call(call)
        finally:
            self._running -= 1

    async def _call(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the engine's thread; return its result, or a `Failure`."""
        return await _outcome(asyncio.run_coroutine_threadsafe(call, self._loop))

    async def _put(self, chunk: Chunk | Failure | None) -> Failure | None:
        """Hand a chunk to the engine; return why it can take no more, if it has failed."""
        loaded = self._loaded
        assert loaded is not None
        while True:
            if loaded.done():
                outcome: Failure | None = await _outcome(loaded)
                return outcome or Failure("the engine took its weights for complete before all had come")
            try:
                self._inbox.put_nowait(chunk)
            except queue.Full:
                await asyncio.sleep(0.005)
            else:
                self._steps += 1
                return None

    def _chunks(self, inbox: queue.Queue[Chunk | Failure | None]) -> Iterator[Chunk]:
        while (chunk := inbox.get()) is not None:
            if isinstance(chunk, Failure):
                raise chunk.error()
            yield chunk

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


async def _outcome(future: Future[Any]) -> Any:
    try:
        with boundary(into=EngineError):
            return await asyncio.wrap_future(future)
    except ParleyError as error:
        return Failure.of(error)
