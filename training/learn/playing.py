"""Plays and scores the games of one training step, without those that an earlier attempt has played and kept.

Raises `StopRequested` once a stop is requested, and what playing and scoring raise.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from training.attempts.progress import Phase
from training.learn import report, scenarios, unfinished
from training.learn.context import TrainingContext
from training.learn.score import Rollout, score
from training.learn.unfinished import Unfinished
from training.players.base import PlayerFactory, Reply
from training.records import LEARNER, Episode
from training.rewards import Score
from training.rollout import Job, RolloutPolicy, rollout

if TYPE_CHECKING:
    from training.rundir import AttemptDir

T = TypeVar("T")


class Reports(Protocol):
    """What playing tells of its progress, and what may end it; `Progress` is one."""

    attempt: AttemptDir

    def phase(self, phase: Phase, **facts: Any) -> None:
        """Begin a phase."""

    def beat(self, **facts: Any) -> None:
        """Report progress inside the phase."""

    def check(self) -> None:
        """Raise `StopRequested` if a stop was requested."""

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, or raise `StopRequested` once a stop is requested."""


async def play(
    context: TrainingContext, progress: Reports, step: int, version: int, begun: int
) -> tuple[list[Rollout], dict[str, float]]:
    """Return the scored games of training step `step` and their metrics.

    `version` is the step after which the engine's weights are, `begun` the one after which this attempt began.
    """
    began = time.monotonic()
    config = context.config
    jobs = scenarios.jobs(config, context.starts, context.opponents.pool, step)
    kept = None
    if config.rollout.keep_unfinished:
        kept = unfinished.open_step(context.run_dir, progress.attempt, step, version, begun)
    episodes = await progress.unless_stopped(sample(context, progress, jobs, step, kept))
    episodes = [context.taught(job, episode) for job, episode in zip(jobs, episodes, strict=True)]
    sampled = time.monotonic()
    progress.phase("scoring", of=len(episodes))
    spent = context.judge.spent if context.judge else None

    def on_scored(game: int, result: Score | None) -> None:
        progress.beat()
        if kept is not None:
            kept.add_score(game, result)

    known = kept.scores if kept else None
    scoring = score(episodes, context.reward, config.seed, step, known=known, on_scored=on_scored)
    rollouts = await progress.unless_stopped(scoring)
    for scored, job in zip(rollouts, jobs, strict=True):
        scored.policies = job.policies
    metrics = report.outcome_metrics(rollouts, by_game=bool(config.mixture))
    metrics |= {f"agreement_{label.label}": label.agreement for label in context.labels if label.agreement is not None}
    if context.judge and spent:
        total = context.judge.spent
        metrics["judge_calls"] = float(total.calls - spent.calls)
        metrics["judge_tokens"] = float(
            total.prompt_tokens + total.completion_tokens - spent.prompt_tokens - spent.completion_tokens
        )
    metrics |= {"sampling_s": sampled - began, "scoring_s": time.monotonic() - sampled}
    metrics["sampling_tokens_per_s"] = metrics.get("sampled_tokens", 0.0) / max(sampled - began, 1e-9)
    return rollouts, metrics


async def sample(
    context: TrainingContext, progress: Reports, jobs: list[Job], step: int, kept: Unfinished | None
) -> list[Episode]:
    """Play the games of a training step that are not `kept` from an earlier attempt; return all of them, in order."""
    config, settings = context.config, context.config.rollout
    probes = settings.probes or context.method.needs.probes
    rules = RolloutPolicy(config.seed, step, settings.retries, settings.on_refused, probes)
    lanes = min(settings.lanes or len(jobs), len(jobs))
    progress.phase("sampling", done=0, of=len(jobs))
    replies = tokens = 0

    def on_reply(reply: Reply) -> None:
        nonlocal replies, tokens
        replies, tokens = replies + 1, tokens + len(reply.tokens)
        progress.beat(replies=replies, tokens=tokens)

    episodes = dict(kept.episodes) if kept else {}
    missing = [job for job in jobs if job.number not in episodes]
    learner: PlayerFactory = partial(context.player, random_moves=context.active.rollout.random_moves)
    policies = {LEARNER: learner, **await context.opponents.ready(step)}
    games = rollout(missing, policies, lanes=lanes, rules=rules, tool=context.tool, on_reply=on_reply)
    async with aclosing(games):
        async for job, episode in games:
            episodes[job.number] = episode
            if kept is not None:
                kept.add_episode(job.number, episode)
            progress.beat(done=len(episodes))
            progress.check()
    return [episodes[job.number] for job in jobs]
