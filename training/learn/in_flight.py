"""In-flight weight updates: sampling ahead, where new weights also go into the engines while games are played.

A step's games begin once the weights after the step `cluster.lag` + 1 before it are there, as with a fixed lag, but
with the newest weights, and their later turns are sampled by still newer ones: no token is older than the lag. An
engine finishes the replies that it decodes, empties its prefix cache and loads, so each reply is of one version, which
its trace has; the keys and values of a game's earlier turns are computed again. How many turns a version samples
depends on which process was faster, so neither seeds nor a resumed run repeat the games. Checkpoints have the games
that are played and not learned, and no weights but their own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from training.learn.prefetch import RolloutPrefetcher
from training.learn.score import Rollout
from training.records import LEARNER

if TYPE_CHECKING:
    from training.engines.chunks import Chunk


class InFlightPrefetcher(RolloutPrefetcher):
    """Plays the coming steps of a phase with the newest weights, which it sends to the engines as they come."""

    _update: asyncio.Task[None] | None = None

    async def learned(self, step: int) -> None:
        """Drop the games of a step, and begin to send the present weights, which are those after it, to the engines.

        Returns before the engines have them, and waits for those before.
        """
        await self._updated()
        self.staged = {step: await self._learners.stage()}
        self.played.pop(step, None)
        self._learned = step
        if not self._task.done():
            self._update = asyncio.create_task(self._load(step))
        self._announce()

    async def settle(self, step: int) -> None:
        """Do nothing: games that are still to be played need no weights but those of the checkpoint."""

    def older(self, step: int) -> dict[int, Callable[[], Iterator[Chunk]]]:
        """Return nothing: no game is to be played by older weights."""
        return {}

    @contextlib.asynccontextmanager
    async def idle(self) -> AsyncIterator[None]:
        """Keep the engine free of games of training steps, and of updates."""
        async with super().idle():
            await self._updated()
            yield

    def behind(self, step: int, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Return how many steps the weights were behind, over the learner's tokens, and how many played a game."""
        return spread(rollouts, step, self._start)

    async def close(self) -> None:
        """Stop playing."""
        await super().close()
        if self._update is not None:
            await asyncio.gather(self._update, return_exceptions=True)

    def _has(self, version: int) -> bool:
        return any(each >= version for each in self.staged)

    async def _prepare(self, version: int) -> None:
        await self._updated()

    async def _updated(self) -> None:
        """Wait until the engines have the weights that were last sent to them; raise what went wrong."""
        if self._update is not None:
            await asyncio.wait({self._update})  # which, unlike awaiting it, does not end it if this ends
            self._update.result()


def spread(rollouts: Sequence[Rollout], step: int, start: int = 0) -> dict[str, float]:
    """Return the spread of versions in the games of a training step; `start` is the step before its phase.

    `lag` and `lag_max`: mean and most steps by which the weights of the learner's sampled tokens were behind, 0 = those
    after the step before; `versions`: mean number of versions that played a game.
    """
    behind: list[int] = []
    counts: list[int] = []
    for rollout in rollouts:
        traces = [trace for trace in rollout.episode.traces if trace.policy == LEARNER]
        # the weights that a phase starts from may be those of an earlier step
        played = [max(version, start) for trace in traces for version in trace.sampled_by() if version is not None]
        behind += [step - 1 - version for version in played]
        counts += [len(set(played))] if played else []
    if not behind:
        return {}
    mean, versions = sum(behind) / len(behind), sum(counts) / len(counts)
    return {"lag": mean, "lag_max": float(max(behind)), "versions": versions}
