"""vLLM inside this process: the engine of training, on CPU and GPU.

A thread of its own owns vLLM and steps it while there is work; requests and weights reach it through a queue, answers
go back to the event loop that asked. Within one process only one engine steps at a time, for vLLM keeps global state.
The model computes in this process too; one that is split over several GPUs or groups of cores (`tensor_parallel`)
computes in as many worker processes, which end with this one.
Every failure raises `EngineError`; after one inside vLLM the engine refuses further work.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import queue
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.cluster.devices import split
from training.cluster.processes import temporary_folder
from training.engines.adapters import LINEAR, check_adapters, check_known, check_lora, served_rank
from training.engines.base import EngineOptions, Sample, SampleRequest, Weights
from training.engines.trie import trie_of
from training.errors import EngineError, ParleyError, boundary

if TYPE_CHECKING:
    from training.engines.local.vllm_core import VllmCore

SETTINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # in process, so that weights are handed over as tensors
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # the sampler that `DiscardedMasses` wraps belongs to the first runner
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would copy locks that other threads of this process hold
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
LOOPBACK = {
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
}
"""Keeps the workers of an engine, which are all on this machine, from listening to others."""
_ALONE = threading.Lock()
"""Acquired while any engine of this process is inside vLLM."""


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A task of the thread. One without a name runs alone, when no request is running, and before those that wait."""

    name: str | None
    begin: Callable[[VllmCore], None]
    answer: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop

    def settle(self, result: Any) -> None:
        """Answer the caller from any thread; do nothing if the caller is gone."""

        def deliver() -> None:
            if self.answer.done():
                return
            if isinstance(result, BaseException):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(deliver)


class VllmEngine:
    """An `Engine` over vLLM's `LLMEngine`. `eager` = without compiling or capturing graphs (the default on CPU)."""

    def __init__(self, model: str | Path, options: EngineOptions | None = None, *, eager: bool | None = None) -> None:
        options = options or EngineOptions()
        self._names = map(str, count())
        self._inbox: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False  # under the gate, so that no task is put behind the end of the inbox
        self._running: dict[str, _Task] = {}
        self._most_running = options.max_running
        self._broken = ""
        self.steps = 0  # of vLLM; others see by it that the engine makes progress
        self.workers: tuple[int, ...] = ()  # processes that compute, where these are others than this one
        self.gpu_bytes = 0  # that torch has taken in them
        started: queue.SimpleQueue[int | ParleyError] = queue.SimpleQueue()
        self._choices = options.choices
        self._most, self._known = options.adapters, frozenset[str]()
        self._thread = threading.Thread(
            target=self._live, args=(model, options, _arguments(options, eager), started), name="vllm", daemon=True
        )
        self._thread.start()
        result = started.get()
        if isinstance(result, ParleyError):
            raise result
        self.window = result

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample one continuation; see `Engine.sample`."""
        check_known(request.adapter, self._known)
        if trie_of(request) and not self._choices:
            raise EngineError("this engine was made without the option `choices`")
        room = min(request.sampling.max_tokens, self.window - len(request.prompt))
        if not request.prompt or room < max([1, *map(len, request.choices)]):
            raise EngineError(f"a prompt of {len(request.prompt)} tokens leaves no room in a window of {self.window}")
        name = next(self._names)
        sample: Sample = await self._ask(name, lambda core: core.add(name, request, room))
        return sample

    async def score(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str = ""
    ) -> list[float]:
        """Return summed log-probabilities of `continuations`; see `AdapterEngine.score`."""
        check_known(adapter, self._known)
        if not prefix:
            raise EngineError("a continuation can only be scored after at least one token")
        longest = max((len(tokens) for tokens in continuations), default=0)
        if len(prefix) + longest > self.window - 1:
            raise EngineError(f"{len(prefix)} + {longest} tokens do not fit a window of {self.window}")
        return list(await asyncio.gather(*(self._score(prefix, tokens, adapter) for tokens in continuations)))

    async def _score(self, prefix: Sequence[int], continuation: Sequence[int], adapter: str) -> float:
        if not continuation:
            return 0.0
        name = next(self._names)
        score: float = await self._ask(name, lambda core: core.add_score(name, prefix, continuation, adapter))
        return score

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Replace the weights after the running requests have ended; later requests wait for the new weights."""
        if self._most:
            raise EngineError("an engine with adapters keeps its weights")
        await self._ask(None, lambda core: core.reload(weights, version))

    async def load_adapters(self, adapters: Mapping[str, Path]) -> None:
        """Replace the adapters after the running requests have ended; see `AdapterEngine.load_adapters`."""
        check_adapters(adapters, self._most)
        for folder in adapters.values():
            check_lora(folder)
        await self._ask(None, lambda core: core.load_adapters(adapters))
        self._known = frozenset(adapters)

    async def close(self) -> None:
        """Stop the thread; running and waiting requests fail."""
        with self._gate:
            self._closed = True
            self._inbox.put(None)
        await asyncio.to_thread(self._thread.join)

    async def _ask(self, name: str | None, begin: Callable[[VllmCore], None]) -> Any:
        loop = asyncio.get_running_loop()
        task = _Task(name, begin, loop.create_future(), loop)
        with self._gate:
            if self._closed:
                raise EngineError("the engine is closed")
            self._inbox.put(task)
        return await task.answer

    # What follows runs in the thread.

    def _live(
        self,
        model: str | Path,
        options: EngineOptions,
        arguments: dict[str, Any],
        started: queue.SimpleQueue[int | ParleyError],
    ) -> None:
        """Build vLLM, serve until stopped, free it."""
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        if options.tensor_parallel > 1:
            os.environ.update(_environment(options))
        try:
            with _ALONE, boundary(into=EngineError):
                from training.engines.local.vllm_core import VllmCore  # caches of compilers stay outside the folder

                with _sockets_in(_folder()):
                    core = VllmCore(model, options.window, arguments, choices=self._choices)
        except ParleyError as error:
            started.put(error)
            return
        self.workers, self.gpu_bytes = core.workers, core.gpu_bytes
        started.put(core.window)
        backlog: deque[_Task] = deque()
        try:
            while self._collect(backlog):
                self._begin(core, backlog)
                self._forget_cancelled(core)
                if self._running:
                    self._step(core)
        finally:
            self._fail_all(backlog)
        with _ALONE, boundary(into=EngineError):
            core.shutdown()

    def _fail_all(self, backlog: deque[_Task]) -> None:
        """Refuse further tasks and fail all existing ones, including those in the inbox."""
        with self._gate:
            self._closed = True
        while not self._inbox.empty():
            if (task := self._inbox.get()) is not None:
                backlog.append(task)
        for task in (*self._running.values(), *backlog):
            task.settle(EngineError("the engine was closed"))

    def _collect(self, backlog: deque[_Task]) -> bool:
        """Move new tasks to `backlog`, waiting for one if there is no other work; return False to stop."""
        while True:
            try:
                task = self._inbox.get(block=not (backlog or self._running))
            except queue.Empty:
                return True
            if task is None:
                return False
            if task.name is None:  # before the requests that wait: a reply takes long, and many may wait
                backlog.insert(sum(each.name is None for each in backlog), task)
            else:
                backlog.append(task)

    def _begin(self, core: VllmCore, backlog: deque[_Task]) -> None:
        """Start the tasks that may run now, in order."""
        while backlog and len(self._running) < (1 if backlog[0].name is None else self._most_running):
            task = backlog.popleft()
            if task.answer.cancelled():
                continue
            try:
                if self._broken:
                    raise EngineError(self._broken)
                with _ALONE, boundary(into=EngineError):
                    task.begin(core)
            except EngineError as error:
                if task.name is None:
                    self._broken = f"the weights are incomplete: {error}"
                task.settle(error)
                continue
            if task.name is None:
                self.gpu_bytes = core.gpu_bytes
                task.settle(None)
            else:
                self._running[task.name] = task

    def _forget_cancelled(self, core: VllmCore) -> None:
        cancelled = [name for name, task in self._running.items() if task.answer.cancelled()]
        if cancelled:
            for name in cancelled:
                del self._running[name]
            with _ALONE:
                core.abort(cancelled)

    def _step(self, core: VllmCore) -> None:
        try:
            with _ALONE, boundary(into=EngineError):
                finished = core.step()
            self.steps += 1
        except EngineError as error:
            self._broken = f"vLLM failed earlier: {error}"
            for task in self._running.values():
                task.settle(error)
            self._running.clear()
            return
        for name, result in finished:
            if (done := self._running.pop(name, None)) is not None:
                done.settle(result)


@functools.cache
def _folder() -> Path:
    """Return the folder for sockets and the like, which vLLM leaves where this process is killed."""
    folder = temporary_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def _sockets_in(folder: Path) -> Iterator[None]:
    """Let an engine that is built meanwhile, and its workers, have their sockets and the file where they meet there."""
    os.environ["VLLM_RPC_BASE_PATH"] = str(folder)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _arguments(options: EngineOptions, eager: bool | None) -> dict[str, Any]:
    """Return the arguments of vLLM's engine that follow from the options."""
    on_cpu = options.device == "cpu"
    arguments: dict[str, Any] = {
        "dtype": options.dtype,
        "max_num_seqs": options.max_running,
        "kv_cache_memory_bytes": int(options.cache_gib * 2**30),
        "enforce_eager": on_cpu if eager is None else eager,
    }
    if options.tensor_parallel > 1:
        arguments |= {
            "tensor_parallel_size": options.tensor_parallel,
            # processes of this one, which share its GPUs; Ray would look for others
            "distributed_executor_backend": "mp",
        }
    if options.adapters:
        arguments |= {
            "enable_lora": True,
            # one more than there are: on CPU, requests without an adapter read the last place, which stays 0
            "max_loras": options.adapters + 1,
            # without the head: its adapter would take rows of scores for sampled tokens
            "lora_target_modules": sorted(LINEAR),
            "max_lora_rank": served_rank(options.adapter_rank),
        }
    if on_cpu:
        # a prompt read in pieces makes vLLM rewind the seeded generators, which those of the CPU cannot do
        arguments["enable_chunked_prefill"] = False
    return arguments


def _environment(options: EngineOptions) -> dict[str, str]:
    """Return the variables of worker processes: for their network, and on CPU for their cores or number of threads."""
    if options.device != "cpu":
        return LOOPBACK
    parts = options.tensor_parallel
    if len(options.cores) >= parts:
        groups = (",".join(map(str, cores)) for cores in split(options.cores, parts))
        return LOOPBACK | {"VLLM_CPU_OMP_THREADS_BIND": "|".join(groups)}
    import torch

    threads = max(1, torch.get_num_threads() // parts)
    return LOOPBACK | {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(threads)}
