"""Several engines as one: each in a process of its own, on one machine or many, behind the protocol of `Engine`.

Ray must be running (`training.cluster.processes`). A request goes to the engine that `affinity` chooses; equal requests
give equal samples whichever engine that is. The requests of an engine that dies are asked again of another, and it is
started again with the newest weights, which stay in Ray's store until others come. An engine that gets on with nothing
for too long is ended, and its requests fail with a sentence that names it. `BadInput` and `EngineError` of the engines
pass through; when the last engine cannot be started again, every call raises `EngineError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from training.engines.actor import Beat, EngineActor, Failure, Started
from training.engines.affinity import Affinity
from training.engines.base import Sample, SampleRequest, Weights
from training.errors import EngineError, ParleyError
from training.records import ProcessStatus

log = logging.getLogger(__name__)

TRIES = 3
"""Engines that may die with one request before it fails: it may be what kills them."""
PAUSE_S = 1.0
"""Seconds between two attempts to start an engine, and most seconds between two beats."""
MOST_CALLS = 10_000
"""Calls that an actor takes at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """How engines run. Times are in seconds.

    `engines`: how many. `gpus`: GPUs of each, or a share of one; 0 = one where they compute on GPUs. `threads`: torch's
    threads of each; 0 = torch's choice. `cores`: the cores of each in order, none = any. `start_s`: how long an engine
    may take to start. `silence_s`: how long it may have work without getting on, or not answer at all. `lease_s`: after
    how long without its driver it ends.
    """

    engines: int = 1
    gpus: float = 0.0
    threads: int = 0
    cores: tuple[tuple[int, ...], ...] = ()
    start_s: float = 600.0
    silence_s: float = 600.0
    lease_s: float = 30.0


class _Gone(Exception):
    """The process of an engine is gone; the text says which."""


@dataclass(slots=True, eq=False)
class _Process:
    """A Ray actor with an engine. `hung` says why it was ended, if it was ended as hanging."""

    actor: Any
    started: Started | None = None
    beat: Beat | None = None
    heard: float = field(default_factory=time.monotonic)
    hung: str = ""


@dataclass(slots=True)
class _Slot:
    """One engine of the pool, through all processes that it has had. `requests` are in flight."""

    index: int
    state: Literal["starting", "serving", "loading", "lost"] = "starting"
    process: _Process | None = None
    beating: asyncio.Task[None] | None = None
    requests: int = 0
    restarts: int = 0
    progressed: float = 0.0

    def __str__(self) -> str:
        return f"engine {self.index}"

    @property
    def started(self) -> Started | None:
        """Return where the engine runs, if it does."""
        process = self.process  # read once: the pool's thread may replace it
        return process.started if process else None

    @property
    def place(self) -> str:
        """Name the engine and its process."""
        started = self.started
        return f"{self} (process {started.pid} on {started.node})" if started else str(self)

    @property
    def busy(self) -> bool:
        return bool(self.requests) or self.state == "loading"

    @property
    def doing(self) -> str:
        """Return what the engine does, as a verb."""
        return {"starting": "starts", "loading": "loads weights", "lost": "does nothing more"}.get(
            self.state, "samples" if self.requests else "waits for requests"
        )


_Processes = list[tuple[_Slot, _Process]]
"""Engines, each with the process that it had when the list was made."""


class EnginePool:
    """An `Engine` over several engines `name` on `model`; `engine_options` are those of `engines.make`."""

    def __init__(self, name: str, model: str | Path, options: PoolOptions | None = None, **engine_options: Any) -> None:
        self._options = options or PoolOptions()
        self._made_with = name, model, engine_options
        on_gpu = str(engine_options.get("device", "cpu")).startswith("cuda")
        self._gpus = self._options.gpus or float(on_gpu)
        self._slots = [_Slot(index) for index in range(self._options.engines)]
        self._affinity = Affinity(len(self._slots))
        self._weights: list[Any] = []  # references to the chunks of the newest weights
        self._incomplete = ""
        self._lost = ""
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="engine-pool", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self._end()
            raise
        self.window = min(slot.started.window for slot in self._slots if slot.started)

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample one continuation; see `Engine.sample`."""
        sample: Sample = await self._on_loop(self._serve(request.prompt, "sample", request))
        return sample

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return summed log-probabilities of `continuations`; see `Engine.score`."""
        scores: list[float] = await self._on_loop(self._serve(prefix, "score", prefix, continuations))
        return scores

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
        taking = await self._on_loop(self._begin_weights())
        failure: Failure | None = Failure("the rest of the weights did not come")
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
        now = time.monotonic()
        return [self._status_of(slot, now) for slot in self._slots]

    def _status_of(self, slot: _Slot, now: float) -> ProcessStatus:
        started = slot.started
        process = slot.process
        beat, heard = (process.beat, process.heard) if process else (None, now)
        return ProcessStatus(
            name=str(slot),
            node=started.node if started else "",
            pid=started.pid if started else 0,
            device=started.device if started else "cpu",
            state=slot.state,
            doing=slot.doing,
            requests=slot.requests,
            waiting_s=round(max(0.0, now - slot.progressed), 1) if slot.busy else 0.0,
            silent_s=round(max(0.0, now - heard), 1),
            rss_bytes=beat.rss_bytes if beat else 0,
            gpu_bytes=beat.gpu_bytes if beat else 0,
            restarts=slot.restarts,
        )

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
        self._lock = asyncio.Lock()  # of the weights
        self._spawn(self._watch())
        starts = [asyncio.create_task(self._launch(slot)) for slot in self._slots]
        try:
            await asyncio.gather(*starts)
        except _Gone as error:
            raise EngineError(f"{error} while it started") from error
        finally:
            for task in starts:
                task.cancel()

    async def _shut(self) -> None:
        for task in (*self._tasks, *(slot.beating for slot in self._slots if slot.beating)):
            task.cancel()
        for slot in self._slots:
            self._kill(slot)
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

    async def _serve(self, prompt: Sequence[int], method: str, *arguments: Any) -> Any:
        """Ask the engine that suits a prompt, and others in turn if it dies."""
        for attempt in range(1, TRIES + 1):
            slot = await self._choose(prompt)
            if not slot.busy:
                slot.progressed = time.monotonic()
            slot.requests += 1
            self._affinity.read(slot.index, prompt)
            try:
                answer = await self._call(slot, method, *arguments)
            except _Gone as error:
                if attempt == TRIES:
                    raise EngineError(f"{TRIES} engines died with this request, the last was {error}") from error
            else:
                if isinstance(answer, Sample) and slot.state == "serving":
                    self._affinity.read(slot.index, (*prompt, *answer.tokens))
                return answer
            finally:
                slot.requests -= 1
        raise AssertionError

    async def _choose(self, prompt: Sequence[int]) -> _Slot:
        """Return the engine for a prompt, when there is one that serves."""
        while True:
            incomplete = "" if self._lock.locked() else self._incomplete  # while it is locked, weights come
            if why := self._lost or incomplete or ("the engine was closed" if self._closed else ""):
                raise EngineError(why)
            if loads := {slot.index: slot.requests for slot in self._slots if slot.state == "serving"}:
                return self._slots[self._affinity.choose(prompt, loads)]
            await self._changed.wait()

    async def _call(self, slot: _Slot, method: str, *arguments: Any) -> Any:
        """Ask one engine; raise `_Gone` if its process ends meanwhile, `EngineError` if it was ended as hanging."""
        return await self._call_process(slot, slot.process, method, *arguments)

    async def _call_process(self, slot: _Slot, process: _Process | None, method: str, *arguments: Any) -> Any:
        """Ask an engine in one of the processes that it has had: `_Gone` unless it is the present one."""
        import ray

        if process is None or process is not slot.process:
            raise _Gone(f"{slot} is gone")
        try:
            reference = getattr(process.actor, method).remote(*arguments)
            try:
                answer = await reference
            except asyncio.CancelledError:
                ray.cancel(reference)
                raise
        except ray.exceptions.RayTaskError as error:
            raise EngineError(f"{slot.place}: {error.cause or error}") from error
        except ray.exceptions.RayError as error:
            if self._closed:
                raise EngineError("the engine was closed") from error
            self._bury(slot, process, error)
            if process.hung:
                raise EngineError(process.hung) from error
            raise _Gone(f"{slot} died") from error
        if isinstance(answer, Failure):
            raise answer.error()
        return answer

    async def _begin_weights(self) -> _Processes:
        """Take the lock of the weights; return the engines that get them, and drop those before."""
        await self._lock.acquire()
        taking = [(slot, slot.process) for slot in self._slots if slot.process and slot.state == "serving"]
        try:
            self._weights.clear()
            self._incomplete = "the weights are incomplete"
            for slot, _ in taking:
                slot.state, slot.progressed = "loading", time.monotonic()
                self._affinity.forget(slot.index)
            await self._of_all(taking, "begin_weights")
        except BaseException:
            self._release(taking)
            raise
        return taking

    async def _pass_on(self, taking: _Processes, chunk: Any) -> None:
        """Give a chunk to the engines, and keep it for those that start later."""
        self._weights.append(chunk)
        await self._of_all(taking, "take", chunk)

    async def _end_weights(self, taking: _Processes, failure: Failure | None) -> None:
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
        import ray

        options = self._options
        cores = options.cores[slot.index] if slot.index < len(options.cores) else ()
        kind = ray.remote(EngineActor).options(
            num_cpus=0,
            num_gpus=self._gpus,
            max_concurrency=MOST_CALLS,
            scheduling_strategy="SPREAD",
        )
        process = slot.process = _Process(
            kind.remote(options.lease_s, cores, options.threads, os.environ.get("PARLEY_HOME"))
        )
        try:
            name, model, engine_options = self._made_with
            start = self._call(slot, "start", name, model, engine_options)
            process.started = await asyncio.wait_for(start, options.start_s)
            async with self._lock:
                await asyncio.wait_for(self._give_weights(slot), options.start_s)
                slot.state, process.heard = "serving", time.monotonic()
        except TimeoutError as error:
            self._kill(slot)
            free = ray.available_resources().get("GPU", 0.0)
            needs = f"; it needs {self._gpus:g} GPU, and {free:g} are free" if self._gpus else ""
            raise EngineError(f"{slot} did not start within {options.start_s:.0f} s{needs}") from error
        except BaseException:
            self._kill(slot)
            raise
        self._announce()

    async def _give_weights(self, slot: _Slot) -> None:
        """Give an engine that has started the weights of the others, if these are not the model's own."""
        if self._weights:
            await self._call(slot, "begin_weights")
            for chunk in self._weights:
                await self._call(slot, "take", chunk)
            await self._call(slot, "end_weights")

    def _bury(self, slot: _Slot, process: _Process, error: Exception) -> None:
        """Note that an engine's process has ended, once, and start another unless that is being done."""
        if slot.process is not process:
            return
        log.warning("%s is gone: %s%s", slot.place, " ".join(str(error).split())[:800], _last_words(process.started))
        self._kill(slot)
        if slot.state in ("serving", "loading"):
            slot.state = "starting"
            slot.restarts += 1
            self._spawn(self._revive(slot))

    async def _revive(self, slot: _Slot) -> None:
        """Start an engine again; give up when this has failed for the time that a start may take."""
        deadline = time.monotonic() + self._options.start_s
        while not self._closed:
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
                    limit = self._options.start_s
                    self._lost = f"{slot}, the last one, could not be started again within {limit:.0f} s: {error}"
                self._announce()
            return

    async def _watch(self) -> None:
        """Renew the leases, hear how far the engines are, and end those that hang."""
        while True:
            for slot in self._slots:
                if slot.process is not None and (slot.beating is None or slot.beating.done()):
                    slot.beating = asyncio.create_task(self._hear(slot))
                self._check(slot)
            await asyncio.sleep(min(PAUSE_S, self._options.lease_s / 5))

    async def _hear(self, slot: _Slot) -> None:
        process = slot.process
        assert process is not None
        with contextlib.suppress(_Gone, ParleyError):  # whose requests report it
            beat: Beat = await self._call_process(slot, process, "beat")
            process.heard = time.monotonic()
            if process is slot.process and (process.beat is None or beat.steps != process.beat.steps or not slot.busy):
                slot.progressed = process.heard
            process.beat = beat

    def _check(self, slot: _Slot) -> None:
        """End an engine that has work and does not get on, or that does not answer."""
        process = slot.process
        if process is None or process.started is None or process.hung or slot.state == "starting":
            return  # a start has a limit of its own
        now, limit = time.monotonic(), self._options.silence_s
        if slot.busy and now - slot.progressed > limit:
            unit = "progress" if slot.state == "loading" else "a token"
            why = f"{slot.doing} since {now - slot.progressed:.0f} s without {unit}"
        elif now - process.heard > limit:
            why = f"has not answered for {now - process.heard:.0f} s"
        else:
            return
        process.hung = f"{slot} on {process.started.node} {why}"
        log.error("%s: it is ended", process.hung)
        _end(process.actor)
        _end_stopped(process.started)
        self._spawn(self._confirm(slot, process))

    async def _confirm(self, slot: _Slot, process: _Process) -> None:
        """Bury an engine that was ended, also where nobody waits for an answer of it."""
        with contextlib.suppress(_Gone, ParleyError):
            await self._call_process(slot, process, "beat")
        self._bury(slot, process, EngineError(process.hung))

    def _kill(self, slot: _Slot) -> None:
        process, slot.process = slot.process, None
        self._affinity.forget(slot.index)
        if process is not None:
            _end(process.actor)


def _last_words(started: Started | None, lines: int = 40) -> str:
    """Return the last lines that a process of this machine wrote to its standard error; Ray keeps them in a file."""
    import ray

    node: Any = ray._private.worker._global_node  # noqa: SLF001 (Ray has no other way to its folder)
    if started is None or node is None or started.node != os.uname().nodename:
        return ""
    texts = []
    with contextlib.suppress(OSError):
        for path in Path(node.get_logs_dir_path()).glob(f"worker-*-{started.pid}.err"):
            texts += path.read_text("utf-8", "replace").splitlines()[-lines:]
    return "\n" + "\n".join(texts) if texts else ""


def _end(actor: Any) -> None:
    """End an actor at once."""
    import ray

    with contextlib.suppress(Exception):  # Ray may be gone already
        ray.kill(actor, no_restart=True)


def _end_stopped(started: Started) -> None:
    """End the process of an actor on this machine also if it is stopped, so that it cannot do what Ray asks."""
    import psutil

    if started.node == os.uname().nodename:
        with contextlib.suppress(psutil.Error, OSError):
            if "ray::EngineActor" in " ".join(psutil.Process(started.pid).cmdline()):
                os.kill(started.pid, signal.SIGKILL)
