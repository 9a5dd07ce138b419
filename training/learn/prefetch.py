"""Sampling ahead of learning: while step n is learned, the games of steps up to n + lag are played.

The lag is fixed: step m is played with the weights after step m - 1 - lag, neither newer nor older ones, whichever of
the two was faster; past selves and the results of a league are those up to the same step.
Nothing is played ahead of a phase, which begins with the weights that it starts from, as a run does. Weights wait in
Ray's store until their games begin. What has been played and not learned is part of a checkpoint; where a stop leaves
games of older weights unplayed, these weights are part of it too, so that a resumed run goes on as if it had not
stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from training import phases
from training.engines.chunks import Chunk, cut
from training.errors import ProcessLost
from training.learn import playing
from training.learn.ray_learners import RayLearners
from training.learn.score import Rollout
from training.learn.tensor_files import TensorFile
from training.records import Episode
from training.rewards import Score

if TYPE_CHECKING:
    from pathlib import Path

    from training.attempts.progress import Progress
    from training.engines.pool import EnginePool
    from training.learn.context import TrainingContext

T = TypeVar("T")
PlayedStep = tuple[list[Rollout], dict[str, float]]
"""The scored games of a training step, and their metrics."""


class RolloutPrefetcher:
    """Plays the coming steps of a phase in a task of its own; the attempt began after step `begun`.

    `span` are the steps of the phase after which training begins and ends, `done` the one after which it stands.
    `played` are steps that an earlier attempt has played; `staged` are weights by the step after which they were, as
    what a pool of engines loads (`EnginePool.load_chunks`).
    """

    def __init__(
        self,
        context: TrainingContext,
        progress: Progress,
        begun: int,
        span: tuple[int, int],
        done: int,
        played: Mapping[int, PlayedStep],
        staged: Mapping[int, list[Any]],
    ) -> None:
        assert isinstance(context.learners, RayLearners), "a lag needs a learner beside the engines"
        self._learners = context.learners
        self._context, self._progress, self._begun = context, _AheadProgress(progress), begun
        self.lag = context.config.cluster.lag
        self._start, self._last = span
        self._learned = self._complete = done
        self.played = dict(played)
        self.staged = dict(staged)
        self._changed = asyncio.Event()
        self._engine = asyncio.Lock()
        self._task = asyncio.create_task(self._play_all(max(played, default=done) + 1))

    def version(self, step: int) -> int:
        """Return the version of the weights that sample a step: v are those after step v."""
        return max(self._start, step - 1 - self.lag)

    async def take(self, step: int) -> PlayedStep:
        """Return the games of a step, as soon as they are played; they stay in `played` until `learned`."""
        await self._wait(step)
        return self.played[step]

    def behind(self, step: int, rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Return the metrics of how old the weights were that played a step, in steps."""
        return {"lag": float(step - 1 - self.version(step))}

    async def settle(self, step: int) -> None:
        """Wait until all steps are played that are sampled by versions older than `step`."""
        await self._wait(min(step + self.lag, self._last))

    async def learned(self, step: int) -> None:
        """Drop the games of a step, and keep the present weights, version `step`, for games that they will sample."""
        if step + 1 + self.lag <= self._last or step == self._start:
            self.staged[step] = await self._learners.stage()
        self.played.pop(step, None)
        self._learned = step
        self._announce()

    def complete(self, step: int) -> None:
        """Note that a step is saved and evaluated where it is due: its weights and results may be played against."""
        self._complete = step
        self._announce()

    @contextlib.asynccontextmanager
    async def idle(self) -> AsyncIterator[None]:
        """Keep the engine free of games of training steps; before the next ones it loads its weights again."""
        async with self._engine:
            yield

    def older(self, step: int) -> dict[int, Callable[[], Iterator[Chunk]]]:
        """Return the chunks of the versions older than `step` that are still to sample games, by version."""
        done = max(self.played, default=step)
        versions = {self.version(each) for each in range(done + 1, min(step + self.lag, self._last) + 1)}
        return {each: partial(_fetched, self.staged[each]) for each in sorted(versions) if each < step}

    async def load_present(self, step: int) -> bool:
        """Let the engine load version `step`, if it is still to sample games; return whether it is.

        Handed out by the ranks once more, they would be in Ray's store twice.
        """
        if step not in self.staged:
            return False
        await self._engines.load_chunks(_each(self.staged[step]), step)
        return True

    async def close(self) -> None:
        """Stop playing."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)  # who awaits games has seen what ended it

    async def _play_all(self, first: int) -> None:
        try:
            for step in range(first, self._last + 1):
                version = self.version(step)
                while not self._has(version) or (self._reads_past and version > self._complete):
                    await self._next()
                async with self._engine:
                    await self._prepare(version)
                    self.played[step] = await playing.play(self._context, self._progress, step, version, self._begun)
                for old in [each for each in self.staged if each < self.version(step + 1)]:
                    del self.staged[old]
                self._announce()
        finally:
            self._announce()

    @property
    def _reads_past(self) -> bool:
        """Whether games depend on checkpoints of the run, or on results against them."""
        return self._context.opponents.pool.uses_past or bool(self._context.config.league.every)

    async def _load(self, version: int) -> None:
        """Give the engine weights that wait."""
        named = phases.weights_after(self._context.config.phases, version)
        await self._engines.load_chunks(_each(self.staged[version]), named)

    @property
    def _engines(self) -> EnginePool:
        from training.engines.pool import EnginePool

        assert isinstance(self._context.engine, EnginePool), "a lag needs engines beside the learner"
        return self._context.engine

    def _has(self, version: int) -> bool:
        """Whether there are weights with which games of this version may begin."""
        return version in self.staged

    async def _prepare(self, version: int) -> None:
        """Let the engine have the weights of games that begin.

        They are loaded also if it has them: what it holds of other prompts would round games differently.
        """
        await self._load(version)

    async def _wait(self, step: int) -> None:
        while step not in self.played and step > self._learned:
            if self._task.done():
                await self._task  # raises what ended it
            await self._next()

    async def _next(self) -> None:
        await self._changed.wait()

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class _AheadProgress:
    """What games that are played beside learning see of `Progress`: the phase stays that of the learner."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self.attempt = progress, progress.attempt

    def phase(self, phase: str, **facts: Any) -> None:
        self._progress.beat(ahead=phase, **{f"ahead_{name}": value for name, value in facts.items()})

    def beat(self, **facts: Any) -> None:
        self._progress.beat(**{f"ahead_{name}": value for name, value in facts.items()})

    def check(self) -> None:
        self._progress.check()

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        return await self._progress.unless_stopped(work)


def stored(file: Path) -> list[Any]:
    """Put the weights of a file into Ray's store, tensor by tensor; return references to their chunks."""
    import ray

    return [ray.put(chunk) for chunk in cut(TensorFile(file).items())]


def _fetched(chunks: list[Any]) -> Iterator[Chunk]:
    """Yield chunks of Ray's store, which are not copied where they are on this machine."""
    import ray

    for chunk in chunks:
        try:
            fetched: Chunk = ray.get(chunk)
        except ray.exceptions.ObjectLostError as error:
            raise ProcessLost("weights that games wait for are gone with the node that held them") from error
        yield fetched


async def _each(chunks: list[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


def pack(played: Mapping[int, PlayedStep]) -> list[dict[str, Any]]:
    """Return steps that are played and not learned as JSON data."""
    return [
        {
            "step": step,
            "metrics": metrics,
            "games": [
                {
                    "episode": rollout.episode.to_dict(),
                    "score": None if rollout.score is None else rollout.score.to_dict(),
                    "policies": list(rollout.policies),
                }
                for rollout in rollouts
            ],
        }
        for step, (rollouts, metrics) in sorted(played.items())
    ]


def unpack(data: list[Mapping[str, Any]]) -> dict[int, PlayedStep]:
    """Return what `pack` made JSON data of."""
    return {
        entry["step"]: (
            [
                Rollout(
                    number,
                    Episode.from_dict(game["episode"]),
                    None if game["score"] is None else Score.from_dict(game["score"]),
                    policies=tuple(game["policies"]),
                )
                for number, game in enumerate(entry["games"])
            ],
            entry["metrics"],
        )
        for entry in data
    }
