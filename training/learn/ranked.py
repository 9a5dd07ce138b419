"""Several learner ranks as the driver sees them: each a process of its own, on one machine or many.

Ray must be running (`training.cluster.processes`). What one rank raises on purpose all raise, and it is raised here.
When a rank dies, or gets on with nothing for too long, the others cannot go on without it: all are ended, and every
call raises `OutsideError` with a sentence that names it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.attempts.progress import Progress, StopRequested
from training.bases import ModelInfo
from training.engines.chunks import Chunk
from training.engines.local.loading import load_tokenizer
from training.engines.pool import EnginePool
from training.errors import BadInput, OutsideError
from training.learn import checkpoint, models
from training.learn.checkpoint import TrainerState
from training.learn.learner import Settings
from training.learn.rank_actor import Opened, Part, Raised, RankActor, RankBeat
from training.learn.update import BadStep
from training.records import ProcessStatus

if TYPE_CHECKING:
    from training.engines.base import Engine
    from training.learn.batch import Item
    from training.records import Floats

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """How ranks run. Times are in seconds.

    `ranks`: how many. `gpus`: GPUs of each. `threads`: torch's threads of each; 0 = torch's choice. `cores`: the cores
    of each in order, none = any. `meeting_point`: a file that does not exist, where ranks on one machine meet; None = a
    port of the first rank's machine. `start_s`: how long they may take to start. `silence_s`: how long a rank may be at
    work without getting on. `lease_s`: after how long without its driver a rank ends.
    """

    ranks: int = 1
    gpus: float = 0.0
    threads: int = 0
    cores: tuple[tuple[int, ...], ...] = ()
    meeting_point: Path | None = None
    start_s: float = 600.0
    silence_s: float = 600.0
    lease_s: float = 30.0


@dataclass(slots=True)
class _Rank:
    """One rank: where it runs, and what was last heard of it."""

    number: int
    actor: Any
    opened: Opened | None = None
    beat: RankBeat | None = None
    heard: float = field(default_factory=time.monotonic)
    progressed: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        where = f" (process {self.opened.pid} on {self.opened.node})" if self.opened else ""
        return f"learner rank {self.number}{where}"

    @property
    def doing(self) -> str:
        """Return what the rank does, as a verb; empty if nothing."""
        return self.beat.doing if self.beat else "starts"


class RankedLearners:
    """The `Learners` over several processes; `arguments` are those of `training.learn.policy.load`."""

    def __init__(self, arguments: Mapping[str, Any], options: RankOptions) -> None:
        import ray

        self._options, self._broken, self._closed = options, "", threading.Event()
        self.tokenizer = load_tokenizer(arguments["base"])
        kind = ray.remote(RankActor)
        self._ranks = [
            _Rank(
                number,
                kind.options(num_cpus=0, num_gpus=options.gpus, max_concurrency=1000).remote(
                    number,
                    options.ranks,
                    options.lease_s,
                    options.cores[number] if number < len(options.cores) else (),
                    options.threads,
                    os.environ.get("PARLEY_HOME"),
                ),
            )
            for number in range(options.ranks)
        ]
        self._thread = threading.Thread(target=self._listen, name="learner-ranks", daemon=True)
        self._thread.start()
        try:
            place = str(options.meeting_point)
            if options.meeting_point is None:
                (place,) = self._wait([self._ranks[0].actor.meeting_point.remote()], options.start_s)
            opened: list[Opened] = self._all("open", place, dict(arguments), limit=options.start_s)
        except BaseException:
            self.close()
            raise
        for rank, each in zip(self._ranks, opened, strict=True):
            rank.opened = each
        self.window = opened[0].window

    # --- what the driver asks: see `Learners` ---

    def begin(self, settings: Settings) -> None:
        """See `Learner.begin`."""
        self._all("begin", settings)

    def go_back(self, folder: Path) -> None:
        """See `Learner.go_back`; every rank must be able to read the folder."""
        self._all("go_back", folder)

    def take(self, state: TrainerState) -> None:
        """See `Learner.take`."""
        import ray

        self._all("take", ray.put(state))

    @property
    def unfitted(self) -> tuple[str, ...]:
        """See `Learner.unfitted`."""
        names: tuple[str, ...] = self._all("unfitted")[0]
        return names

    def begin_critic(self, means: Mapping[str, float]) -> None:
        """See `Learner.begin_critic`."""
        self._all("begin_critic", dict(means))

    async def measure(
        self, items: Sequence[Item], *, old: bool, reference: bool, beat: Callable[[int], None]
    ) -> list[dict[str, Floats]]:
        """See `Learners.measure`."""
        parts: list[Part] = await self._work("measure", items, old, reference, meanwhile=lambda: beat(0))
        values: list[dict[str, Floats]] = [{} for _ in items]
        for part in parts:
            for place, by_head in part.values.items():
                values[place] = by_head
            for place, row in part.old.items():
                items[place].old = row
            for place, row in part.reference.items():
                items[place].reference = row
        return values

    async def update(self, items: Sequence[Item], step: int, progress: Progress) -> dict[str, float]:
        """See `Learners.update`."""

        def meanwhile() -> None:
            progress.beat()
            progress.check()

        parts = await self._work("update", items, step, meanwhile=meanwhile)
        every = [each for item in items for each in (item, *item.branches)]
        for _, entropies in parts:
            for place, row in entropies.items():
                every[place].entropy = row
        metrics: dict[str, float] = parts[0][0]
        return metrics

    async def push(self, engine: Engine) -> None:
        """Give a pool of engines the present weights, which do not pass through the driver."""
        if not isinstance(engine, EnginePool):
            raise TypeError("several ranks hand their weights to a pool of engines")

        try:
            await engine.load_chunks(self._weight_chunks())
        except BaseException as error:
            self._break(f"the weights were handed out in part: {error}")
            raise

    async def stage(self) -> list[Any]:
        """Return the present weights as references to chunks in Ray's store, for a pool of engines to load later."""
        return [chunk async for chunk in self._weight_chunks()]

    async def _weight_chunks(self) -> AsyncIterator[Any]:
        self._check()
        for rank in self._ranks:
            rank.actor.stream.remote("weights")
        while True:
            more, chunk = self._next_chunk()
            (another,) = await asyncio.to_thread(self._wait, [more])
            if not another:
                return
            yield chunk

    def save(self, folder: Path, info: ModelInfo, state: TrainerState, *, adapter_only: bool) -> None:
        """See `Learners.save`; the driver writes tensors as they arrive, and has a few chunks of them at a time."""
        data, (weights, tensors) = self._all("optimizers")[0], self._all("outlines")[0]

        def write(inside: Path) -> None:
            for name, file in self._all("describe", adapter_only, info)[0].items():
                (inside / name).write_bytes(file)
            if not adapter_only:
                models.save_weights(weights, self._streamed("weights"), inside)

        state = TrainerState(state.step, state.data | data, state.tensors, state.older)
        checkpoint.write_with(folder, write, state, tensors, self._streamed("tensors"))

    def close(self) -> None:
        """End the ranks."""
        import ray

        self._closed.set()
        for rank in self._ranks:
            with contextlib.suppress(Exception):  # Ray may be gone already
                ray.kill(rank.actor, no_restart=True)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10.0)

    def status(self) -> list[ProcessStatus]:
        """Return what each rank does, from what was last heard of it."""
        now = time.monotonic()
        return [
            ProcessStatus(
                name=f"learner {rank.number}",
                node=rank.opened.node if rank.opened else "",
                pid=rank.opened.pid if rank.opened else 0,
                device=rank.opened.device if rank.opened else "cpu",
                state="lost" if self._broken else "serving" if rank.opened else "starting",
                doing=rank.doing or "waits for the driver",
                waiting_s=round(now - rank.progressed, 1) if rank.doing else 0.0,
                silent_s=round(now - rank.heard, 1),
                rss_bytes=rank.beat.rss_bytes if rank.beat else 0,
                gpu_bytes=rank.beat.gpu_bytes if rank.beat else 0,
            )
            for rank in self._ranks
        ]

    # --- calls ---

    def _all(self, method: str, *arguments: Any, limit: float | None = None) -> list[Any]:
        """Call a method of every rank; return their results in order."""
        self._check()
        return self._wait([getattr(rank.actor, method).remote(*arguments) for rank in self._ranks], limit)

    async def _work(
        self, method: str, items: Sequence[Item], *arguments: Any, meanwhile: Callable[[], None]
    ) -> list[Any]:
        """Call a method of every rank with the same items; `meanwhile` may request a stop, which the ranks raise."""
        import ray

        asked = ""
        call = asyncio.create_task(asyncio.to_thread(self._all, method, ray.put(list(items)), *arguments))
        try:
            while not call.done():
                if not asked:
                    try:
                        meanwhile()
                    except StopRequested as request:
                        asked = str(request) or "stop"
                        self._tell_stop(asked)
                await asyncio.wait({call}, timeout=0.5)
            return call.result()
        finally:
            if asked:
                self._tell_stop("")

    def _tell_stop(self, reason: str) -> None:
        for rank in self._ranks:
            rank.actor.stop.remote(reason)

    def _next_chunk(self) -> tuple[Any, Any]:
        more, chunk = self._ranks[0].actor.chunk.options(num_returns=2).remote()
        return more, chunk

    def _streamed(self, what: str) -> Iterator[Chunk]:
        """Yield the chunks of tensors that all ranks gather."""
        self._check()
        for rank in self._ranks:
            rank.actor.stream.remote(what)
        while True:
            more, chunk = self._wait([*self._next_chunk()])
            if not more:
                return
            yield chunk

    def _wait(self, calls: list[Any], limit: float | None = None) -> list[Any]:
        """Return the results of calls; raise what a rank raised, and `OutsideError` if one is gone or hangs."""
        import ray

        began, waiting = time.monotonic(), list(calls)
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=0.5)
            try:
                for call in done:
                    self._blame(calls.index(call), ray.get(call), alone=not waiting)
            except ray.exceptions.RayTaskError as error:
                raise self._break(f"a learner rank failed: {error.cause or error}") from error
            except ray.exceptions.RayError as error:
                raise self._break(f"{self._dead(error)} died while it {self._doing()}") from error
            self._check()
            if waiting and limit is not None and time.monotonic() - began > limit:
                late = ", ".join(str(rank) for rank in self._ranks if rank.opened is None)
                free = ray.available_resources().get("GPU", 0.0)
                needs = f"; each needs {self._options.gpus:g} GPU, and {free:g} are free" if self._options.gpus else ""
                raise self._break(f"{late} did not start within {limit:.0f} s{needs}")
            if waiting:
                self._find_hanging()
        results = ray.get(calls)
        for result in results:
            if isinstance(result, Raised):
                raise result.error
        return list(results)

    def _blame(self, number: int, result: Any, *, alone: bool) -> None:
        """End all ranks if one failed by itself, for which the others would wait in vain."""
        agreed = (BadInput, BadStep, StopRequested)
        if isinstance(result, Raised) and not alone and not isinstance(result.error, agreed):
            raise self._break(f"{self._ranks[number]} failed: {result.error}")

    def _check(self) -> None:
        if self._broken:
            raise OutsideError(self._broken)

    def _break(self, why: str) -> OutsideError:
        """End all ranks, since they cannot go on; return the error to raise."""
        if not self._broken and not self._closed.is_set():
            self._broken = why
            log.error("%s: the learner's ranks are ended", why)
            self.close()
        return OutsideError(self._broken or "the learner was closed")

    def _dead(self, error: Exception) -> str:
        """Name the rank that an error of Ray is about."""
        actor_id = str(getattr(error, "actor_id", "") or "")
        dead = [rank for rank in self._ranks if actor_id and rank.actor._actor_id.hex() == actor_id]  # noqa: SLF001
        return str(dead[0]) if dead else "a learner rank"

    def _doing(self) -> str:
        return next((rank.doing for rank in self._ranks if rank.doing), "waits")

    def _find_hanging(self) -> None:
        """End all ranks if one is at work and does not get on: the one that has done least is what the others await."""
        now, limit = time.monotonic(), self._options.silence_s
        at_work = [rank for rank in self._ranks if rank.opened and rank.beat and rank.doing]
        if at_work and all(now - rank.progressed > limit for rank in at_work):
            last = min(at_work, key=lambda rank: rank.beat.steps if rank.beat else 0)
            raise self._break(f"{last} {last.doing} since {now - last.progressed:.0f} s without progress")
        for rank in self._ranks:
            if rank.opened and now - rank.heard > limit:
                raise self._break(f"{rank} has not answered for {now - rank.heard:.0f} s")

    def _listen(self) -> None:
        """Renew the leases, and hear how far the ranks are, until they are closed."""
        import ray

        pending: dict[Any, _Rank] = {}
        while not self._closed.wait(min(1.0, self._options.lease_s / 5)):
            with contextlib.suppress(Exception):  # who waits for the ranks reports what is wrong with them
                asked = {id(rank) for rank in pending.values()}
                pending |= {rank.actor.beat.remote(): rank for rank in self._ranks if id(rank) not in asked}
                done, _ = ray.wait(list(pending), num_returns=len(pending), timeout=0.2)
                for call in done:
                    self._note(pending.pop(call), ray.get(call))

    @staticmethod
    def _note(rank: _Rank, beat: RankBeat) -> None:
        rank.heard = time.monotonic()
        if rank.beat is None or (beat.steps, beat.doing) != (rank.beat.steps, rank.beat.doing) or not beat.doing:
            rank.progressed = rank.heard
        rank.beat = beat
