"""One learner rank in a process of its own, as a Ray actor: what `RankedLearners` talks to.

All work runs on one thread, in the order in which it was asked for, since ranks wait for each other in it; the process
answers meanwhile. It ends by itself when its driver has not been heard for a lease. Errors raised on purpose are
returned as `Raised`, so that whatever Ray raises means that the process is gone or broken.
"""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.attempts.progress import StopRequested
from training.cluster.member import Lease, device_of_process, gpu_bytes, pin, rss_bytes
from training.errors import OutsideError, ParleyError, boundary

if TYPE_CHECKING:
    from training.bases import ModelInfo
    from training.engines.chunks import Chunk
    from training.learn.batch import Item
    from training.learn.checkpoint import TrainerState
    from training.learn.learner import Learner, Settings
    from training.records import Floats


@dataclass(frozen=True, slots=True)
class Raised:
    """An error that a rank raised on purpose."""

    error: ParleyError


@dataclass(frozen=True, slots=True)
class RankBeat:
    """What a rank answers at once: `steps` grows while it gets on with what it is `doing` (empty: nothing)."""

    steps: int
    doing: str
    rss_bytes: int
    gpu_bytes: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A rank that is ready: the longest prompt and reply together, and where it runs."""

    window: int
    node: str
    pid: int
    device: str


@dataclass(frozen=True, slots=True)
class Part:
    """What a rank found of the items of a step, by their place: log-probabilities, values by head, entropies."""

    values: dict[int, dict[str, Floats]]
    old: dict[int, Floats]
    reference: dict[int, Floats]


class _Signals:
    """Takes the place of `Progress` in a rank: counts what is done, and knows whether a stop was requested."""

    def __init__(self) -> None:
        self.steps, self.reason = 0, ""

    def beat(self, **facts: object) -> None:
        self.steps += 1

    def check(self) -> None:
        if self.reason:
            raise StopRequested(self.reason)


class RankActor:
    """One rank of `world` behind Ray. `lease_s`: the process ends when no `beat` has come for so long.

    `home` is the driver's PARLEY_HOME, which the nodes of a joined cluster do not know.
    """

    def __init__(
        self,
        rank: int,
        world: int,
        lease_s: float,
        cores: Sequence[int] = (),
        threads: int = 0,
        home: str | None = None,
    ) -> None:
        if home:
            os.environ["PARLEY_HOME"] = home
        self._rank, self._world, self._threads = rank, world, threads
        if cores:
            pin(cores)
        self._signals, self._doing = _Signals(), ""
        self._lease = Lease(lease_s, f"learner rank {rank}")
        self._thread = ThreadPoolExecutor(1, "learner")
        self._chunks: queue.Queue[Chunk | Raised | None] = queue.Queue(maxsize=2)
        self._made: Learner | None = None

    async def meeting_point(self) -> str:
        """Return the address (HOST:PORT) at which the ranks can meet, if this one is the first."""
        import ray

        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return f"{host}:{free.getsockname()[1]}"

    async def open(self, meeting_point: str, arguments: Mapping[str, Any]) -> Opened | Raised:
        """Meet the other ranks, and load this one's part of the model; `arguments` are those of `policy.load`."""

        def work() -> Opened:
            from training.learn import numerics, policy, ranks
            from training.learn.learner import Learner

            for expected in ("The given NumPy array is not writable", "The value of the smallest subnormal"):
                warnings.filterwarnings("ignore", expected)  # items are only read; denormal numbers are zero
            numerics.set_up(arguments["learn"], self._threads)
            group = ranks.join(self._rank, self._world, meeting_point, arguments["device"])
            self._made = Learner(policy.load(**arguments, group=group), arguments["seed"])
            window = int(self._made.policy.inner.config.max_position_embeddings)
            return Opened(window, os.uname().nodename, os.getpid(), device_of_process())

        opened: Opened | Raised = await self._run("loads", work)
        return opened

    async def begin(self, settings: Settings) -> Any:
        """See `Learner.begin`."""
        return await self._run("begins a phase", lambda: self._learner.begin(settings))

    async def go_back(self, folder: Path) -> Any:
        """See `Learner.go_back`."""
        return await self._run("loads a checkpoint", lambda: self._learner.go_back(folder))

    async def take(self, state: TrainerState) -> Any:
        """See `Learner.take`."""
        return await self._run("loads a checkpoint", lambda: self._learner.take(state))

    async def unfitted(self) -> Any:
        """See `Learner.unfitted`."""
        return await self._run("", lambda: self._learner.unfitted)

    async def begin_critic(self, means: Mapping[str, float]) -> Any:
        """See `Learner.begin_critic`."""
        return await self._run("", lambda: self._learner.begin_critic(means))

    async def measure(self, items: Sequence[Item], old: bool, reference: bool) -> Part | Raised:
        """Return what this rank measured of the items that it read."""

        def work() -> Part:
            values = self._learner.measure(items, old=old, reference=reference, beat=self._beat)
            mine = [place for place, each in enumerate(values) if each is not None]
            return Part(
                {place: values[place] or {} for place in mine},
                {place: row for place in mine if (row := items[place].old) is not None and old},
                {place: row for place in mine if (row := items[place].reference) is not None and reference},
            )

        part: Part | Raised = await self._run("measures", work)
        return part

    async def update(self, items: Sequence[Item], step: int) -> Any:
        """Return the metrics, and the entropies of what this rank read, by place among the items and their branches."""

        def work() -> tuple[dict[str, float], dict[int, Floats]]:
            metrics = self._learner.update(items, step, self._signals)
            every = (each for item in items for each in (item, *item.branches))
            return metrics, {place: e.entropy for place, e in enumerate(every) if e.entropy is not None}

        return await self._run("learns", work)

    async def describe(self, adapter_only: bool, info: ModelInfo) -> Any:
        """Return the files of a model folder by name, without full weights; adapters are among them."""

        def work() -> dict[str, bytes]:
            from training.learn import models

            policy = self._learner.policy
            with tempfile.TemporaryDirectory() as folder:
                models.save_files(policy.model, policy.tokenizer, Path(folder), info, adapter_only=adapter_only)
                return {file.name: file.read_bytes() for file in Path(folder).iterdir()} if not self._rank else {}

        return await self._run("saves", work)

    async def optimizers(self) -> Any:
        """Return the JSON part of the optimizers' state."""
        return await self._run("saves", lambda: self._learner.optimizers()[0])

    async def outlines(self) -> Any:
        """See `Learner.outlines`."""
        return await self._run("saves", self._learner.outlines)

    async def stream(self, what: str) -> None:
        """Begin to gather tensors, `weights` or `tensors`, on all ranks; those of the first are read by `chunk`."""
        from training.engines.chunks import cut

        def work() -> None:
            outcome: Raised | None = None
            try:
                with boundary():
                    for chunk in cut(getattr(self._learner, what)()):
                        self._signals.beat()
                        if not self._rank:
                            self._chunks.put(chunk)
            except ParleyError as error:
                outcome = Raised(error)
            if not self._rank:
                self._chunks.put(outcome)

        self._submit("hands out weights" if what == "weights" else "saves", work)

    async def chunk(self) -> tuple[bool | Raised, Chunk]:
        """Return whether there is another chunk, and the chunk."""
        chunk = await asyncio.to_thread(self._chunks.get)
        if chunk is None:
            return False, []
        return (chunk, []) if isinstance(chunk, Raised) else (True, chunk)

    async def stop(self, reason: str) -> None:
        """Request the work in progress to stop; an empty reason takes that back."""
        self._signals.reason = reason

    async def beat(self) -> RankBeat:
        """Renew the lease and answer how far this rank is."""
        self._lease.renew()
        return RankBeat(self._signals.steps, self._doing, rss_bytes(), gpu_bytes())

    @property
    def _learner(self) -> Learner:
        assert self._made is not None
        return self._made

    def _beat(self, tokens: int) -> None:
        self._signals.beat()
        self._signals.check()

    def _submit(self, doing: str, work: Callable[[], Any]) -> Future[Any]:
        def named() -> Any:
            self._doing = doing
            try:
                return work()
            finally:
                self._doing = ""

        return self._thread.submit(named)

    async def _run(self, doing: str, work: Callable[[], Any]) -> Any:
        """Run work on the learner's thread; return its result, or what it raised."""
        future = self._submit(doing, work)
        try:
            with boundary(into=OutsideError):
                return await asyncio.wrap_future(future)
        except ParleyError as error:
            return Raised(error)
