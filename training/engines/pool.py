"""Several engines as one: each in a process of its own, on one machine or many, behind the protocol of `Engine`.

Ray must be running (`training.cluster.processes`). A request goes to the engine that `affinity` chooses; equal requests
give equal samples whichever engine that is, up to rounding, which depends on the batch. The requests of an engine that
dies are sent again to another, and it is started again with the newest weights, which stay in Ray's store until others
come. Each process can have engines of other models, too (`EnginePool.open_model`). An engine that makes no progress for
too long is killed, and its requests fail with a sentence that names it. `BadInput` and `EngineError` of the engines
pass through; when the last engine cannot be started again, or the newest weights are gone with the node that held
them, or Ray itself is lost, every call raises `ProcessLost`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Hashable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.cluster import watch
from training.cluster.nodes import one_line
from training.cluster.supervisor import Process, ProcessOptions, Supervisor
from training.cluster.worker import RemoteError
from training.engines.actor import EngineActor
from training.engines.affinity import Affinity
from training.engines.base import Sample, SampleRequest, Weights
from training.engines.pool_loader import LoadedModel, PoolLoader
from training.engines.pool_model import PoolModel
from training.engines.slots import Gone, Slot
from training.errors import EngineError, ParleyError, ProcessLost
from training.records import ProcessStatus

if TYPE_CHECKING:
    from training.engines.pooling import Pooling

log = logging.getLogger(__name__)

TRIES = 3
"""Engines that may die with one request before it fails: it may be what kills them."""
PAUSE_S = 1.0
"""Seconds between two attempts to start an engine."""


class EnginePool:
    """An `Engine` over several engines `name` on `model`; `engine_options` are those of `engines.make`."""

    def __init__(
        self, name: str, model: str | Path, options: ProcessOptions | None = None, **engine_options: Any
    ) -> None:
        options = options or ProcessOptions()
        self._model = LoadedModel(name, model, engine_options)
        self._keys = map(str, count(1))
        self._slots = [Slot(index) for index in range(options.count)]
        self._affinity = Affinity(len(self._slots))
        self._loader = PoolLoader(self._slots, self._affinity, self._model, self._call_process, self._announce)
        self._lost = ""
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="engine-pool", daemon=True)
        self._thread.start()
        self._supervisor = Supervisor(EngineActor, "engine", options, self._ended)
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self._end()
            raise
        started = (slot.process.started for slot in self._slots if slot.process)
        self.window = min(each.window for each in started if each)

    @property
    def version(self) -> int | None:
        """The version of the newest weights, also while the engines load them; None = the model's own, or not named."""
        return self._loader.version

    def open_model(self, name: str, model: str | Path, **engine_options: Any) -> PoolModel:
        """Make an engine of another model in every process, on the devices of the pool's own; see `engines.make`.

        It is split as the pool's own is, and then has workers of its own. Every node must have the model's folder.
        Blocks until they are made: the caller's event loop must not be sending weights to the pool meanwhile.
        """
        self._check()
        key, options = next(self._keys), self._model.options
        same = {"device": options.get("device", "cpu"), "tensor_parallel": options.get("tensor_parallel", 1)}
        opening = self._loader.open_model(key, LoadedModel(name, model, engine_options | same))
        asyncio.run_coroutine_threadsafe(opening, self._loop).result()
        return PoolModel(self, key)

    async def close_model(self, key: str) -> None:
        """End the engines of another model; do nothing if they are ended."""
        if not self._lost:
            await self._on_loop(self._loader.close_model(key))

    async def sample(self, request: SampleRequest, key: str = "") -> Sample:
        """Sample one continuation from the model with a key; see `Engine.sample`."""
        call = self._serve((request.prompt, _policy(key, request.adapter)), "sample", key, request)
        sample: Sample = await self._on_loop(call)
        return sample

    async def score(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str = "", key: str = ""
    ) -> list[float]:
        """Return summed log-probabilities of `continuations`; see `AdapterEngine.score`."""
        call = self._serve((prefix, _policy(key, adapter)), "score", key, prefix, continuations, adapter)
        scores: list[float] = await self._on_loop(call)
        return scores

    async def embed(
        self, base: str, texts: Sequence[str], pooling: Pooling, dialogues: Sequence[Hashable] | None = None
    ) -> Any:
        """Return the embeddings (n, d) of n turns by a model, which is loaded where it is asked first.

        Every node must have it; see `training.engines.local.embedding.Embedder.embed`.
        """
        device = self._model.options.get("device", "cpu")
        return await self._on_loop(self._serve(((), ""), "embed", base, device, texts, pooling, dialogues))

    async def load_adapters(self, adapters: Mapping[str, Path], key: str = "") -> None:
        """Load the same adapters into all engines of a model; every node must be able to read their folders."""
        await self._on_loop(self._loader.load_adapters(key, dict(adapters)))

    async def load_folder(self, folder: Path, key: str) -> None:
        """Load the weights of a folder, which every node must be able to read, into all engines of another model."""
        await self._on_loop(self._loader.load_folder(key, folder))

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Load the same weights into all engines, a chunk at a time; later requests wait until all have them."""
        import ray

        from training.engines.chunks import cut

        async def chunks() -> AsyncIterator[Any]:
            for chunk in cut(weights):
                yield ray.put(chunk)

        await self.load_chunks(chunks(), version)

    async def load_chunks(self, chunks: AsyncIterator[Any], version: int | None = None) -> None:
        """Load the same weights into all engines, by references to chunks in Ray's store; no chunk passes through here.

        An engine loads them once its running requests have ended, so that each sample is of one version.
        """
        if self._model.options.get("adapters"):
            raise EngineError("an engine with adapters keeps its weights")
        loop = asyncio.get_running_loop()  # on which the chunks are made

        async def chunk() -> Any:
            return await anext(chunks, None)

        async def next_chunk() -> Any:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(chunk(), loop))

        # in one call, so that the answer that the engines load cannot get lost between two threads
        await self._on_loop(self._loader.load_weights(next_chunk, version))

    async def close(self) -> None:
        """End the engines; running and waiting requests fail."""
        await asyncio.to_thread(self._end)

    def status(self) -> list[ProcessStatus]:
        """Return what each engine does, from what was last heard of it."""
        return [slot.status() for slot in self._slots]

    def _check(self) -> None:
        if self._lost:
            raise ProcessLost(self._lost)
        if self._closed:
            raise EngineError("the engine is closed")

    async def _on_loop(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the pool's own thread, so that the caller's event loop may be blocked or change."""
        try:
            self._check()
        except ParleyError:
            call.close()
            raise
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # What follows runs on the pool's thread.

    async def _open(self) -> None:
        """Start all engines at once."""
        self._changed = asyncio.Event()
        self._given_up = self._loop.create_future()  # done once the pool is lost
        starts = [asyncio.create_task(self._launch(slot)) for slot in self._slots]
        try:
            await asyncio.gather(*starts)
        except Gone as error:
            raise ProcessLost(f"{error} while it started") from error
        finally:
            for task in starts:
                task.cancel()

    async def _shut_down(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.to_thread(self._supervisor.close)
        self._announce()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:  # their calls fail as the actors are gone
            _, waiting = await asyncio.wait(others, timeout=10.0)
            for task in waiting:
                task.cancel()

    def _spawn(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _announce(self) -> None:
        """Wake all who wait for an engine."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, read: tuple[Sequence[int], str], method: str, *arguments: Any) -> Any:
        """Call the engine that suits a prompt and a policy, and another one if it dies."""
        prompt, policy = read
        for attempt in range(1, TRIES + 1):
            slot = await self._choose(prompt, policy)
            slot.requests += 1
            self._affinity.read(slot.index, prompt, policy)
            try:
                answer = await self._call(slot, method, *arguments)
            except Gone as error:
                if attempt == TRIES:
                    raise EngineError(f"{TRIES} engines died with this request; the last: {error}") from error
            else:
                if isinstance(answer, Sample) and slot.state == "serving":
                    self._affinity.read(slot.index, (*prompt, *answer.tokens), policy)
                return answer
            finally:
                slot.requests -= 1
        raise AssertionError

    async def _choose(self, prompt: Sequence[int], policy: str) -> Slot:
        """Return the engine for a prompt, when there is one that serves."""
        while True:
            if self._lost:
                raise ProcessLost(self._lost)
            if why := self._loader.incomplete or ("the engine was closed" if self._closed else ""):
                raise EngineError(why)
            if loads := {slot.index: slot.requests for slot in self._slots if slot.state == "serving"}:
                return self._slots[self._affinity.choose(prompt, loads, policy)]
            await self._changed.wait()

    async def _call(self, slot: Slot, method: str, *arguments: Any) -> Any:
        """Call one engine; raise `Gone` if its process ends meanwhile, `EngineError` if it was ended as hanging."""
        return await self._call_process(slot, slot.process, method, *arguments)

    async def _call_process(self, slot: Slot, process: Process | None, method: str, *arguments: Any) -> Any:
        """Call an engine in one of the processes that it has had; raise `Gone` unless that is the present one."""
        import ray

        if process is None or process is not slot.process:
            raise Gone(f"{slot} is gone")
        try:
            reference = getattr(process.actor, method).remote(*arguments)
            answer = await self._answer(reference)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error, ray.exceptions.ObjectLostError):  # an argument; an answer is lost with its process
                log.debug("Ray says of what %s was to load: %s", process, one_line(error))
                self._give_up(f"what {process} was to load is gone, probably with the node that held it")
                raise ProcessLost(self._lost) from error
            raise EngineError(f"{process}: {one_line(error.cause or error)}") from error
        except ray.exceptions.RayError as error:
            if self._closed:
                raise EngineError("the engine was closed") from error
            self._supervisor.lost(process, error)
            self._handle_death(process)
            if process.hung:
                raise EngineError(process.hung) from error
            raise Gone(f"{slot} died") from error
        if isinstance(answer, RemoteError):
            raise answer.error
        return answer

    async def _answer(self, reference: Any) -> Any:
        """Return what a process answers; raise `ProcessLost` once the pool is, since then nothing may ever come."""
        import ray

        call = asyncio.ensure_future(reference)
        try:
            await asyncio.wait({call, self._given_up}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not watch.lost():
                ray.cancel(reference)
            call.cancel()
            raise
        if call.done():
            return call.result()
        call.cancel()
        raise ProcessLost(self._lost)

    async def _launch(self, slot: Slot) -> None:
        """Start an engine's process, make its engine, give it the newest weights, and let it serve."""
        process = slot.process = self._supervisor.launch(slot.index)
        model, start_s = self._model, self._supervisor.options.start_s
        try:
            starting = self._call(slot, "start", model.name, model.model, model.options)
            process.ready(await asyncio.wait_for(starting, start_s))
            await self._loader.restore(slot, start_s)
        except TimeoutError as error:
            self._end_process(slot)
            raise EngineError(self._supervisor.late(str(slot))) from error
        except BaseException:
            self._end_process(slot)
            raise
        self._announce()

    def _ended(self, process: Process, why: str) -> None:
        """Handle the end of a process, which the supervisor reports from a thread of its own."""
        if watch.lost():
            self._loop.call_soon_threadsafe(self._give_up, why)
        else:
            self._loop.call_soon_threadsafe(self._handle_death, process)

    def _give_up(self, why: str) -> None:
        """Let all calls fail: no engine can ever serve again, or not with the weights that it should have."""
        self._lost = self._lost or why
        if not self._given_up.done():
            self._given_up.set_result(None)
        for slot in self._slots:
            slot.state, slot.process = "lost", None
        self._announce()

    def _handle_death(self, process: Process) -> None:
        """Note that an engine's process has ended, once, and start another unless that is being done."""
        slot = self._slots[process.number]
        if slot.process is not process or self._closed:
            return
        self._end_process(slot)
        if slot.state in ("serving", "loading"):
            slot.state = "starting"
            slot.restarts += 1
            self._spawn(self._restart(slot))

    def _end_process(self, slot: Slot) -> None:
        process, slot.process = slot.process, None
        self._affinity.forget(slot.index)
        if process is not None:
            self._supervisor.end(process)

    async def _restart(self, slot: Slot) -> None:
        """Start an engine again; give up when this has failed for the time that a start may take."""
        limit = self._supervisor.options.start_s
        deadline = time.monotonic() + limit
        while not self._closed and not self._lost:
            try:
                await self._launch(slot)
            except ProcessLost:
                return
            except (Gone, ParleyError) as error:
                log.warning("%s does not start again: %s", slot, error)
                slot.state = "starting"
                if time.monotonic() < deadline:
                    await asyncio.sleep(PAUSE_S)
                    continue
                slot.state = "lost"
                if all(other.state == "lost" for other in self._slots):
                    self._give_up(f"{slot}, the last one, could not be started again within {limit:.0f} s: {error}")
                self._announce()
            return


def _policy(key: str, adapter: str) -> str:
    """Return the name of what samples: prompts that another policy has read are of no use to it."""
    return f"{key} {adapter}" if key else adapter
