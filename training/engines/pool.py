"""Several engines as one: each in a process of its own, on one machine or many, behind the protocol of `Engine`.

Ray must be running (`training.cluster.processes`). A request goes to the engine that `affinity` chooses; equal requests
give equal samples whichever engine that is. The requests of an engine that dies are asked again of another, and it is
started again with the newest weights, which stay in Ray's store until others come. An engine that makes no progress
for too long is ended, and its requests fail with a sentence that names it. `BadInput` and `EngineError` of the engines
pass through; when the last engine cannot be started again, or Ray itself is lost, every call raises `ProcessLost`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.cluster import watch
from training.cluster.supervisor import Process, ProcessOptions, State, Supervisor
from training.cluster.worker import Raised
from training.engines.actor import EngineActor
from training.engines.affinity import Affinity
from training.engines.base import Sample, SampleRequest, Weights
from training.errors import EngineError, ParleyError, ProcessLost
from training.records import ProcessStatus

log = logging.getLogger(__name__)

TRIES = 3
"""Engines that may die with one request before it fails: it may be what kills them."""
PAUSE_S = 1.0
"""Seconds between two attempts to start an engine."""


class _Gone(Exception):
    """The process of an engine is gone; the text says which."""


@dataclass(slots=True)
class _Slot:
    """One engine of the pool, through all processes that it has had. `requests` are in flight."""

    index: int
    state: State = "starting"
    process: Process | None = None
    requests: int = 0
    restarts: int = 0

    def __str__(self) -> str:
        return f"engine {self.index}"

    def status(self) -> ProcessStatus:
        """Return what the engine does."""
        process = self.process  # read once: the pool's thread may replace it
        if process is None:
            idle = "starting" if self.state == "starting" else ""
            return ProcessStatus(name=str(self), state=self.state, doing=idle, restarts=self.restarts)
        idle = "sampling" if self.requests else "waiting for requests"  # until a beat says more
        return process.status(str(self), self.state, idle, requests=self.requests, restarts=self.restarts)


_Processes = list[tuple[_Slot, Process]]
"""Engines, each with the process that it had when the list was made."""


class EnginePool:
    """An `Engine` over several engines `name` on `model`; `engine_options` are those of `engines.make`."""

    def __init__(
        self, name: str, model: str | Path, options: ProcessOptions | None = None, **engine_options: Any
    ) -> None:
        options = options or ProcessOptions()
        self._made_with = name, model, engine_options
        self._slots = [_Slot(index) for index in range(options.count)]
        self._affinity = Affinity(len(self._slots))
        self._weights: list[Any] = []  # references to the chunks of the newest weights
        self._adapters: dict[str, Path] = {}
        self._incomplete = ""
        self._lost = ""
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="engine-pool", daemon=True)
        self._thread.start()
        self._supervisor = Supervisor(EngineActor, "engine", options, self._ended)
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self._end()
            raise
        started = (slot.process.started for slot in self._slots if slot.process)
        self.window = min(each.window for each in started if each)

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample one continuation; see `Engine.sample`."""
        sample: Sample = await self._on_loop(self._serve((request.prompt, request.adapter), "sample", request))
        return sample

    async def score(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str = ""
    ) -> list[float]:
        """Return summed log-probabilities of `continuations`; see `AdapterEngine.score`."""
        call = self._serve((prefix, adapter), "score", prefix, continuations, adapter)
        scores: list[float] = await self._on_loop(call)
        return scores

    async def load_adapters(self, adapters: Mapping[str, Path]) -> None:
        """Give all engines the same adapters; every node must be able to read their folders."""
        await self._on_loop(self._give_adapters(dict(adapters)))

    async def load_weights(self, weights: Weights) -> None:
        """Give all engines the same weights, a chunk at a time; requests wait until all have them."""
        import ray

        from training.engines.chunks import cut

        async def chunks() -> AsyncIterator[Any]:
            for chunk in cut(weights):
                yield ray.put(chunk)

        await self.load_chunks(chunks())

    async def load_chunks(self, chunks: AsyncIterator[Any]) -> None:
        """Give all engines the same weights, as references to chunks in Ray's store, which do not pass through here."""
        if self._made_with[2].get("adapters"):
            raise EngineError("an engine with adapters keeps its weights")
        taking = await self._on_loop(self._begin_weights())
        failure: Raised | None = Raised(EngineError("the rest of the weights did not come"))
        try:
            async for reference in chunks:
                await self._on_loop(self._pass_on(taking, reference))
            failure = None
        finally:
            await self._on_loop(self._end_weights(taking, failure))

    async def close(self) -> None:
        """End the engines; running and waiting requests fail."""
        await asyncio.to_thread(self._end)

    def status(self) -> list[ProcessStatus]:
        """Return what each engine does, from what was last heard of it."""
        return [slot.status() for slot in self._slots]

    async def _on_loop(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the pool's own thread, so that the caller's event loop may be blocked or change."""
        if self._closed:
            call.close()
            raise EngineError("the engine is closed")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # What follows runs on the pool's thread.

    async def _open(self) -> None:
        """Start all engines at once."""
        self._changed = asyncio.Event()
        self._lock = asyncio.Lock()  # of weights and adapters
        self._without_ray = self._loop.create_future()  # done once Ray is lost
        starts = [asyncio.create_task(self._launch(slot)) for slot in self._slots]
        try:
            await asyncio.gather(*starts)
        except _Gone as error:
            raise ProcessLost(f"{error} while it started") from error
        finally:
            for task in starts:
                task.cancel()

    async def _shut(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.to_thread(self._supervisor.close)
        self._announce()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:  # their calls fail as the actors are gone
            await asyncio.wait(others, timeout=10.0)

    def _spawn(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _announce(self) -> None:
        """Wake all who wait for an engine."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, read: tuple[Sequence[int], str], method: str, *arguments: Any) -> Any:
        """Ask the engine that suits a prompt and an adapter, and others in turn if it dies."""
        prompt, adapter = read
        for attempt in range(1, TRIES + 1):
            slot = await self._choose(prompt, adapter)
            slot.requests += 1
            self._affinity.read(slot.index, prompt, adapter)
            try:
                answer = await self._call(slot, method, *arguments)
            except _Gone as error:
                if attempt == TRIES:
                    raise EngineError(f"{TRIES} engines died with this request; the last: {error}") from error
            else:
                if isinstance(answer, Sample) and slot.state == "serving":
                    self._affinity.read(slot.index, (*prompt, *answer.tokens), adapter)
                return answer
            finally:
                slot.requests -= 1
        raise AssertionError

    async def _choose(self, prompt: Sequence[int], adapter: str) -> _Slot:
        """Return the engine for a prompt, when there is one that serves."""
        while True:
            incomplete = "" if self._lock.locked() else self._incomplete  # while it is locked, weights come
            if self._lost:
                raise ProcessLost(self._lost)
            if why := incomplete or ("the engine was closed" if self._closed else ""):
                raise EngineError(why)
            if loads := {slot.index: slot.requests for slot in self._slots if slot.state == "serving"}:
                return self._slots[self._affinity.choose(prompt, loads, adapter)]
            await self._changed.wait()

    async def _call(self, slot: _Slot, method: str, *arguments: Any) -> Any:
        """Ask one engine; raise `_Gone` if its process ends meanwhile, `EngineError` if it was ended as hanging."""
        return await self._call_process(slot, slot.process, method, *arguments)

    async def _call_process(self, slot: _Slot, process: Process | None, method: str, *arguments: Any) -> Any:
        """Ask an engine in one of the processes that it has had: `_Gone` unless it is the present one."""
        import ray

        if process is None or process is not slot.process:
            raise _Gone(f"{slot} is gone")
        try:
            reference = getattr(process.actor, method).remote(*arguments)
            answer = await self._answer(reference)
        except ray.exceptions.RayTaskError as error:
            raise EngineError(f"{process}: {error.cause or error}") from error
        except ray.exceptions.RayError as error:
            if self._closed:
                raise EngineError("the engine was closed") from error
            self._supervisor.lost(process, error)
            self._bury(process)
            if process.hung:
                raise EngineError(process.hung) from error
            raise _Gone(f"{slot} died") from error
        if isinstance(answer, Raised):
            raise answer.error
        return answer

    async def _answer(self, reference: Any) -> Any:
        """Return what a process answers; raise `ProcessLost` once Ray is lost, since then nothing may ever come."""
        import ray

        call = asyncio.ensure_future(reference)
        try:
            await asyncio.wait({call, self._without_ray}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not self._lost:
                ray.cancel(reference)
            call.cancel()
            raise
        if call.done():
            return call.result()
        call.cancel()
        raise ProcessLost(self._lost)

    async def _begin_weights(self) -> _Processes:
        """Take the lock of the weights; return the engines that get them, and drop those before."""
        taking = await self._take_lock()
        try:
            self._weights.clear()
            self._incomplete = "the weights are incomplete"
            await self._of_all(taking, "begin_weights")
        except BaseException:
            self._release(taking)
            raise
        return taking

    async def _pass_on(self, taking: _Processes, chunk: Any) -> None:
        """Give a chunk to the engines, and keep it for those that start later."""
        self._weights.append(chunk)
        await self._of_all(taking, "take", chunk)

    async def _end_weights(self, taking: _Processes, failure: Raised | None) -> None:
        """Wait until the engines have the weights; let them serve, and release the lock."""
        try:
            await self._of_all(taking, "end_weights", failure)
            self._incomplete = ""
        except ParleyError as error:
            self._incomplete = f"the weights are incomplete: {error}"
            self._weights.clear()
            if failure is None:
                raise
        finally:
            self._release(taking)

    async def _give_adapters(self, adapters: dict[str, Path]) -> None:
        """Give all engines adapters, and keep their names for those that start later."""
        taking = await self._take_lock()
        try:
            await self._of_all(taking, "load_adapters", adapters)
            self._adapters = adapters
        finally:
            self._release(taking)

    async def _take_lock(self) -> _Processes:
        """Take the lock of what engines have to load; return those that serve, which do so no longer."""
        await self._lock.acquire()
        taking = [(slot, slot.process) for slot in self._slots if slot.process and slot.state == "serving"]
        for slot, _ in taking:
            slot.state = "loading"
            self._affinity.forget(slot.index)
        return taking

    def _release(self, taking: _Processes) -> None:
        for slot, process in taking:
            if slot.state == "loading" and slot.process is process:
                slot.state = "serving"
        self._lock.release()
        self._announce()

    async def _of_all(self, taking: _Processes, method: str, *arguments: Any) -> None:
        """Ask these engines, and drop from the list those that are gone: they get their weights when they start."""
        calls = (self._call_process(slot, process, method, *arguments) for slot, process in taking)
        results = await asyncio.gather(*calls, return_exceptions=True)
        pairs = list(zip(taking, results, strict=True))
        taking[:] = [process for process, result in pairs if not isinstance(result, _Gone)]
        for _, result in pairs:
            if isinstance(result, BaseException) and not isinstance(result, _Gone):
                raise result

    async def _launch(self, slot: _Slot) -> None:
        """Start an engine's process, make its engine, give it the newest weights, and let it serve."""
        process = slot.process = self._supervisor.launch(slot.index)
        start_s = self._supervisor.options.start_s
        try:
            process.ready(await asyncio.wait_for(self._call(slot, "start", *self._made_with), start_s))
            async with self._lock:
                await asyncio.wait_for(self._give_weights(slot), start_s)
                slot.state = "serving"
        except TimeoutError as error:
            self._end_process(slot)
            raise EngineError(self._supervisor.late(str(slot))) from error
        except BaseException:
            self._end_process(slot)
            raise
        self._announce()

    async def _give_weights(self, slot: _Slot) -> None:
        """Give an engine that has started the weights of the others, if these are not the model's own, and adapters."""
        if self._weights:
            await self._call(slot, "begin_weights")
            for chunk in self._weights:
                await self._call(slot, "take", chunk)
            await self._call(slot, "end_weights")
        if self._adapters:
            await self._call(slot, "load_adapters", self._adapters)

    def _ended(self, process: Process, why: str) -> None:
        """Take the news of the supervisor, which has a thread of its own."""
        if watch.lost():
            self._loop.call_soon_threadsafe(self._give_up, why)
        else:
            self._loop.call_soon_threadsafe(self._bury, process)

    def _give_up(self, why: str) -> None:
        """Let all calls fail: Ray is lost."""
        self._lost = why
        if not self._without_ray.done():
            self._without_ray.set_result(None)
        for slot in self._slots:
            slot.state, slot.process = "lost", None
        self._announce()

    def _bury(self, process: Process) -> None:
        """Note that an engine's process has ended, once, and start another unless that is being done."""
        slot = self._slots[process.number]
        if slot.process is not process or self._closed:
            return
        self._end_process(slot)
        if slot.state in ("serving", "loading"):
            slot.state = "starting"
            slot.restarts += 1
            self._spawn(self._revive(slot))

    def _end_process(self, slot: _Slot) -> None:
        process, slot.process = slot.process, None
        self._affinity.forget(slot.index)
        if process is not None:
            self._supervisor.end(process)

    async def _revive(self, slot: _Slot) -> None:
        """Start an engine again; give up when this has failed for the time that a start may take."""
        limit = self._supervisor.options.start_s
        deadline = time.monotonic() + limit
        while not self._closed and not self._lost:
            try:
                await self._launch(slot)
            except (_Gone, ParleyError) as error:
                log.warning("%s does not start again: %s", slot, error)
                slot.state = "starting"
                if time.monotonic() < deadline:
                    await asyncio.sleep(PAUSE_S)
                    continue
                slot.state = "lost"
                if all(other.state == "lost" for other in self._slots):
                    self._lost = f"{slot}, the last one, could not be started again within {limit:.0f} s: {error}"
                self._announce()
            return
