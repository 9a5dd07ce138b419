"""Games without results of their own, in a suite: a judge's value for the goal of each seat is the seat's return."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from training.errors import OutsideError
from training.labels.codebooks import SOTOPIA
from training.records import Episode, ErrorRecord, Judgment
from training.rewards.judge import Judge, transcript_of
from training.rollout import Job
from training.seeding import derive

GOAL = next(label_type for label_type in SOTOPIA.labels if label_type.name == "goal")
"""The dimension of `SOTOPIA` whose value is the return."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A game with the judgments from which its returns come; without any where it has results of its own."""

    episode: Episode
    judgments: tuple[Judgment, ...] = ()


async def judged(
    playing: AsyncGenerator[tuple[Job, Episode], None], judge: Judge | None, seed: int
) -> AsyncGenerator[tuple[Job, Judged], None]:
    """Yield games as they end, or with a judge once they are judged, after all are played.

    Games are judged while others are still played. Leaving early ends all calls of the judge.
    """
    waiting: list[asyncio.Future[tuple[Job, Judged]]] = []
    try:
        async for job, episode in playing:
            if judge is None:
                yield job, Judged(episode)
            else:
                waiting.append(asyncio.ensure_future(_judged(judge, job, episode, seed)))
        for game in waiting:
            yield await game
    finally:
        for game in waiting:
            game.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _judged(judge: Judge, job: Job, episode: Episode, seed: int) -> tuple[Job, Judged]:
    """Return a game with the judge's values as its returns; one that could not be judged has an error."""
    if episode.error is not None:
        return job, Judged(episode)
    transcript = transcript_of(episode.scenario, episode.moves)
    seats = range(len(episode.scenario.seats))
    try:
        verdicts = await asyncio.gather(
            *(judge.score(transcript, SOTOPIA, seat, seed=derive(seed, "goal", job.number, seat)) for seat in seats)
        )
    except OutsideError as error:
        record = ErrorRecord(kind=error.kind, message=str(error))
        return job, Judged(episode.model_copy(update={"error": record}))
    returns = {verdict.seat: verdict.values[GOAL.name] for verdict in verdicts}
    judgments = tuple(verdict.judgment(judge.name, str(job.number)) for verdict in verdicts)
    return job, Judged(episode.model_copy(update={"returns": returns}), judgments)
