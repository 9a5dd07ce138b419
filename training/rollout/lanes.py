"""Many episodes concurrently: a fixed number is in flight, and the next one starts when one ends.

Results do not depend on which episodes run together: a request's seed depends on its position, not on its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass

from training.errors import BadInput
from training.games import anonymised
from training.players.base import PlayerFactory, Reply
from training.records import Episode, Scenario
from training.rollout.episode import Tool, play
from training.rollout.seats import RolloutPolicy


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to play: its number within the training step, and the policy of every seat by name."""

    number: int
    scenario: Scenario
    policies: tuple[str, ...]


async def rollout(
    jobs: Sequence[Job],
    policies: Mapping[str, PlayerFactory],
    *,
    lanes: int,
    rules: RolloutPolicy,
    tool: Tool | None = None,
    on_reply: Callable[[Reply], None] = lambda reply: None,
) -> AsyncGenerator[tuple[Job, Episode], None]:
    """Yield (job, episode) as episodes end, `lanes` of them in flight; closing the generator cancels the rest.

    Names that the seats must not read are replaced by neutral ones. `on_reply` is called with every reply, legal or
    not; an exception that it raises ends the rollout. Raises `BadInput` for an unknown policy or a scenario that its
    game refuses. A failure outside the model is the `error` of its episode, and the other episodes continue.
    """
    _check(jobs, policies, lanes)
    waiting = iter(jobs)
    running: set[asyncio.Task[tuple[Job, Episode]]] = set()
    ended: asyncio.Queue[asyncio.Task[tuple[Job, Episode]]] = asyncio.Queue()

    async def play_job(job: Job) -> tuple[Job, Episode]:
        scenario = anonymised(job.scenario)
        players = [policies[name](scenario, seat) for seat, name in enumerate(job.policies)]
        return job, await play(scenario, players, rules=rules, number=job.number, tool=tool, on_reply=on_reply)

    def start() -> None:
        job = next(waiting, None)
        if job is not None:
            task = asyncio.create_task(play_job(job))
            running.add(task)
            task.add_done_callback(end)

    def end(task: asyncio.Task[tuple[Job, Episode]]) -> None:
        running.discard(task)
        ended.put_nowait(task)
        if not task.cancelled() and task.exception() is None:
            start()

    try:
        for _ in range(lanes):
            start()
        while running or not ended.empty():
            yield (await ended.get()).result()
    finally:
        unfinished = list(running)
        waiting = iter(())
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


def _check(jobs: Sequence[Job], policies: Mapping[str, PlayerFactory], lanes: int) -> None:
    if lanes < 1:
        raise BadInput("at least one episode must be in flight", "lanes")
    missing = {name for job in jobs for name in job.policies} - set(policies)
    if missing:
        raise BadInput(f"no policy is called {', '.join(sorted(missing))}", "policies")


async def collect(
    jobs: Sequence[Job],
    policies: Mapping[str, PlayerFactory],
    *,
    lanes: int,
    rules: RolloutPolicy,
    tool: Tool | None = None,
) -> list[Episode]:
    """Return the episodes in the order of `jobs`."""
    places = {id(job): at for at, job in enumerate(jobs)}
    episodes: dict[int, Episode] = {}
    async for job, episode in rollout(jobs, policies, lanes=lanes, rules=rules, tool=tool):
        episodes[places[id(job)]] = episode
    return [episodes[at] for at in range(len(jobs))]
