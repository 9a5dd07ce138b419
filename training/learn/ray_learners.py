"""Several learner ranks as the driver sees them: each a process of its own, on one machine or many.

Ray must be running (`training.cluster.processes`). What one rank raises on purpose all raise, and it is raised here.
When a rank dies, or makes no progress for too long, the others cannot go on without it: all are ended, and every call
raises `ProcessLost` with a sentence that names it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from training.attempts.progress import StopRequested
from training.bases import ModelInfo
from training.cluster.nodes import one_line
from training.cluster.supervisor import Process, ProcessOptions, Supervisor
from training.cluster.worker import RemoteError
from training.engines.chunks import Chunk
from training.engines.local.loading import load_tokenizer
from training.engines.pool import EnginePool
from training.errors import BadInput, OutsideError, ParleyError, ProcessLost
from training.learn import checkpoint, models
from training.learn.checkpoint import TrainerState
from training.learn.learner import Learner, Learners
from training.learn.rank_actor import RankActor
from training.learn.update import BadStep, Signals
from training.records import ProcessStatus

if TYPE_CHECKING:
    from torch import Tensor

    from training.engines.base import Engine
    from training.learn.batch import Item

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
AGREED = (BadInput, BadStep, StopRequested)
"""What one rank raises and then all raise, in methods of `Learner` that the driver calls."""
GRACE_S = 5.0
"""Seconds within which the death of one rank is noticed that made another one fail."""


class RayLearners(Learners):
    """The `Learners` over several processes; `arguments` are those of `training.learn.policy.load`.

    `rendezvous`: a file that does not exist, where ranks on one machine meet; None = a port of the first rank's
    machine. `bfloat16`: engines, which sample in it, get the weights in it.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        options: ProcessOptions,
        rendezvous: Path | None = None,
        *,
        bfloat16: bool = False,
    ) -> None:
        self._weights_method = Learner.bfloat16_weights if bfloat16 else Learner.weights
        self.tokenizer = load_tokenizer(arguments["base"])
        self._broken: ParleyError | None = None
        self._closed, self._lock = False, threading.Lock()
        self._supervisor = Supervisor(RankActor, "learner rank", options, self._ended, together=True)
        try:
            self._ranks = [self._supervisor.launch(number) for number in range(options.count)]
            place = str(rendezvous)
            if rendezvous is None:
                [place] = self._wait([(self._ranks[0], self._ranks[0].actor.rendezvous.remote())], options.start_s)
            calls = [
                (rank, rank.actor.start.remote(rank.number, options.count, place, dict(arguments)))
                for rank in self._ranks
            ]
            for rank, started in zip(self._ranks, self._wait(calls, options.start_s), strict=True):
                rank.ready(started)
        except BaseException:
            self.close()
            raise
        self.window = min(rank.started.window for rank in self._ranks if rank.started)

    # --- what the driver asks ---

    def check(self) -> None:
        """See `Learners.check`."""
        if self._broken:
            raise self._error()

    def call(self, method: Callable[Concatenate[Learner, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """See `Learners.call`."""
        result: T = self._all("call", method.__name__, *arguments, **named)[0]
        return result

    async def work(
        self, method: Callable[..., T], items: Sequence[Item], *arguments: Any, progress: Signals
    ) -> list[T]:
        """See `Learners.work`: `progress` may request a stop, which the ranks raise."""
        asked = ""
        call = asyncio.create_task(asyncio.to_thread(self._all, "work", method.__name__, list(items), *arguments))
        try:
            while not call.done():
                if not asked:
                    try:
                        progress.beat()
                        progress.check()
                    except StopRequested as request:
                        asked = str(request) or "stop"
                        self._tell_stop(asked)
                await asyncio.wait({call}, timeout=0.5)
            return call.result()
        finally:
            if asked:
                self._tell_stop("")

    async def push(self, engine: Engine, version: int) -> None:
        """Send a pool of engines the present weights, which do not pass through the driver."""
        if not isinstance(engine, EnginePool):
            raise TypeError("several ranks send their weights to a pool of engines")

        try:
            await engine.load_chunks(self._weight_chunks(), version)
        except BaseException as error:
            self._break(OutsideError(f"the weights were sent in part: {error}"))
            raise

    async def stage(self) -> list[Any]:
        """Return the present weights as references to chunks in Ray's store, for a pool of engines to load later."""
        return [chunk async for chunk in self._weight_chunks()]

    async def _weight_chunks(self) -> AsyncIterator[Any]:
        streams = self._begin_stream(self._weights_method)
        while True:
            more, chunk = self._next_chunk()
            [another] = await asyncio.to_thread(self._wait, [(self._ranks[0], more)], beside=streams[1:])
            if not another:
                break
            yield chunk
        await asyncio.to_thread(self._wait, streams)

    def save(
        self, folder: Path, info: ModelInfo, state: TrainerState, *, adapter_only: bool, beat: Callable[[], None]
    ) -> None:
        """See `Learners.save`; the driver writes tensors as they arrive, and has a few chunks of them at a time."""
        data, (weights, tensors) = self.call(Learner.optimizer_data), self.call(Learner.outlines)

        def write(inside: Path) -> None:
            for name, file in self.call(Learner.files, info, adapter_only).items():
                (inside / name).write_bytes(file)
            if not adapter_only:
                models.save_weights(weights, self._streamed(Learner.weights), inside, beat)

        state = TrainerState(state.step, state.data | data, state.tensors, state.older)
        checkpoint.write_with(folder, write, state, tensors, self._streamed(Learner.tensors), beat)

    def close(self) -> None:
        """End the ranks."""
        self._closed = True
        self._supervisor.close()

    def status(self) -> list[ProcessStatus]:
        """Return what each rank does, from what was last heard of it."""
        return [
            rank.status(
                f"learner {rank.number}",
                "lost" if self._broken else "serving" if rank.started else "starting",
                "waiting for the driver",
            )
            for rank in self._ranks
        ]

    # --- calls ---

    def _all(self, method: str, *arguments: Any, **named: Any) -> list[Any]:
        """Call a method of every rank, with arguments that are sent once; return their results in order."""
        import ray

        self.check()
        sent = [ray.put(argument) for argument in arguments]
        return self._wait([(rank, getattr(rank.actor, method).remote(*sent, **named)) for rank in self._ranks])

    def _tell_stop(self, reason: str) -> None:
        for rank in self._ranks:
            rank.actor.stop.remote(reason)

    def _begin_stream(self, method: Callable[[Learner], Iterator[tuple[str, Tensor]]]) -> list[tuple[Process, Any]]:
        """Let all ranks gather tensors; return the calls, which last until they have."""
        self.check()
        return [(rank, rank.actor.stream.remote(method.__name__)) for rank in self._ranks]

    def _streamed(self, method: Callable[[Learner], Iterator[tuple[str, Tensor]]]) -> Iterator[Chunk]:
        """Yield the chunks of tensors that all ranks gather."""
        streams = self._begin_stream(method)
        while True:
            more, chunk = self._wait([(self._ranks[0], call) for call in self._next_chunk()], beside=streams[1:])
            if not more:
                break
            yield chunk
        self._wait(streams)

    def _next_chunk(self) -> tuple[Any, Any]:
        more, chunk = self._ranks[0].actor.chunk.options(num_returns=2).remote()
        return more, chunk

    def _wait(
        self,
        calls: Sequence[tuple[Process, Any]],
        limit: float | None = None,
        beside: Sequence[tuple[Process, Any]] = (),
    ) -> list[Any]:
        """Return the results of calls; raise what a rank raised, and `ProcessLost` if one is gone or hangs.

        `beside` are calls that are going on, without which these may never end: what they raise is raised too.
        """
        import ray

        began, asked = time.monotonic(), {call: rank for rank, call in calls}
        waiting = list(asked)
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=0.5)
            for call in done:
                self._look(asked[call], call, alone=not waiting)
            if waiting:
                self._look_beside(beside)
            self.check()
            if waiting and limit is not None and time.monotonic() - began > limit:
                late = ", ".join(str(rank) for rank in dict.fromkeys(asked[call] for call in waiting))
                raise self._break(OutsideError(self._supervisor.late(late)))
        results = ray.get(list(asked))
        for result in results:
            if isinstance(result, RemoteError):
                raise result.error
        return list(results)

    def _look(self, rank: Process, call: Any, *, alone: bool, agreed: tuple[type[ParleyError], ...] = AGREED) -> None:
        """End all ranks if one is gone, or failed by itself, for which the others would wait in vain."""
        import ray

        try:
            result = ray.get(call)
        except ray.exceptions.RayTaskError as error:
            raise self._break(OutsideError(f"{rank} failed: {one_line(error.cause or error)}")) from error
        except ray.exceptions.RayError as error:
            self._supervisor.lost(rank, error)
            self._await_cause()
            raise self._error() from error
        if isinstance(result, RemoteError) and not alone and not isinstance(result.error, agreed):
            self._await_cause()  # it may have failed because another one died
            raise self._break(OutsideError(f"{rank} failed: {result.error}"))

    def _look_beside(self, calls: Sequence[tuple[Process, Any]]) -> None:
        """End all ranks if one of these calls has failed; those that go on are left alone."""
        import ray

        ranks = {call: rank for rank, call in calls}
        for call in ray.wait([*ranks], num_returns=len(ranks), timeout=0)[0] if ranks else ():
            self._look(ranks[call], call, alone=False, agreed=())

    def _await_cause(self) -> None:
        """Give the supervisor the time in which it says which process is gone."""
        end = time.monotonic() + GRACE_S
        while not self._broken and not self._closed and time.monotonic() < end:
            time.sleep(0.1)

    def _error(self) -> ParleyError:
        return type(self._broken)(str(self._broken)) if self._broken else OutsideError("the learner was closed")

    def _ended(self, rank: Process, why: str) -> None:
        self._break(ProcessLost(why))

    def _break(self, error: ParleyError) -> ParleyError:
        """End all ranks, since they cannot go on; return the error to raise. May be called from any thread."""
        with self._lock:
            first = not self._broken and not self._closed
            if first:
                self._broken = error
        if first:
            log.error("%s: all learner ranks are killed", error)
            self._supervisor.close()
        return self._error()
