"""One learner rank in a process of its own, as a Ray actor: what `RayLearners` talks to.

All work runs on one thread, in the order in which it was asked for, since ranks wait for each other in it.
"""

from __future__ import annotations

import asyncio
import queue
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from training.attempts.progress import StopRequested
from training.cluster.worker import RemoteError, Started, Worker, ignore_expected_warnings, skip_unused
from training.errors import ParleyError, boundary

if TYPE_CHECKING:
    from training.engines.chunks import Chunk
    from training.learn.batch import Item
    from training.learn.learner import Learner

ACTIVITIES = {
    "begin": "beginning a phase",
    "go_back": "loading a checkpoint",
    "take": "loading a checkpoint",
    "measure": "measuring",
    "update": "learning",
    "files": "saving",
    "optimizer_data": "saving",
    "outlines": "saving",
    "tensors": "saving",
    "weights": "sending weights",
    "bfloat16_weights": "sending weights",
}
"""What a rank does in methods of `Learner`; the others take no time."""


class RankProgress:
    """Takes the place of `Progress` in a rank: counts what is done, and knows whether a stop was requested."""

    def __init__(self) -> None:
        self.steps, self.reason = 0, ""

    def beat(self, **facts: object) -> None:
        """Count a step."""
        self.steps += 1

    def check(self) -> None:
        """Raise `StopRequested` if a stop was requested."""
        if self.reason:
            raise StopRequested(self.reason)


class RankActor(Worker):
    """One rank behind Ray."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._progress = RankProgress()
        self._thread = ThreadPoolExecutor(1, "learner")
        self._chunks: queue.Queue[Chunk | RemoteError | None] = queue.Queue(maxsize=2)
        self._made: Learner | None = None
        self._listener: socket.socket | None = None

    @property
    def steps(self) -> int:
        """See `Worker.steps`."""
        return self._progress.steps

    async def rendezvous(self) -> str:
        """Listen where the ranks meet, as the first of them; return the address (HOST:PORT)."""
        import ray

        host = ray.util.get_node_ip_address()
        on_ipv6 = ":" in host
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if on_ipv6 else socket.AF_INET)
        port = self._listener.getsockname()[1]
        return f"[{host}]:{port}" if on_ipv6 else f"{host}:{port}"

    async def start(
        self, rank: int, world: int, rendezvous: str, arguments: Mapping[str, Any]
    ) -> Started | RemoteError:
        """Meet the other ranks, and load this one's part of the model; `arguments` are those of `policy.load`."""

        def work() -> int:
            skip_unused()
            from training.learn import numerics, policy, ranks
            from training.learn.learner import Learner

            ignore_expected_warnings()
            numerics.set_up(arguments["learn"], self._threads)
            group = ranks.join(rank, world, rendezvous, arguments["device"], listener=self._listener)
            self._made = Learner(policy.load(**arguments, group=group), arguments["seed"], self._progress.beat)
            return self._made.window

        window = await self._run("loading the model", work)
        return window if isinstance(window, RemoteError) else self._started(window)

    async def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of `Learner`."""
        return await self._run(ACTIVITIES.get(method, ""), lambda: getattr(self._learner, method)(*arguments, **named))

    async def work(self, method: str, items: Sequence[Item], *arguments: Any) -> Any:
        """Call a method of `Learner` that reads items and may be stopped."""
        return await self.call(method, items, *arguments, self._progress)

    async def stream(self, method: str) -> RemoteError | None:
        """Gather the tensors of a method of `Learner` on all ranks; those of the first are read by `chunk`.

        Returns what this rank raised, on every rank: the others wait for it in vain.
        """
        from training.engines.chunks import cut

        first = self._learner.policy.ranks.first

        def work() -> None:
            outcome: RemoteError | None = None
            try:
                with boundary():
                    for chunk in cut(getattr(self._learner, method)()):
                        self._progress.beat()
                        if first:
                            self._chunks.put(chunk)
            except ParleyError as error:
                outcome = RemoteError(error)
                raise
            finally:
                if first:
                    self._chunks.put(outcome)

        raised: RemoteError | None = await self._run(ACTIVITIES[method], work)
        return raised

    async def chunk(self) -> tuple[bool | RemoteError, Chunk]:
        """Return whether there is another chunk, and the chunk."""
        chunk = await asyncio.to_thread(self._chunks.get)
        if chunk is None:
            return False, []
        return (chunk, []) if isinstance(chunk, RemoteError) else (True, chunk)

    async def stop(self, reason: str) -> None:
        """Request the work in progress to stop; an empty reason takes that back."""
        self._progress.reason = reason

    @property
    def _learner(self) -> Learner:
        assert self._made is not None
        return self._made

    async def _run(self, doing: str, work: Callable[[], Any]) -> Any:
        """Run work on the learner's thread; see `_outcome`."""
        return await self._outcome(doing, self._thread.submit(work))
