"""Scoring of one target by a judge model; after failed retries it is recorded as "could not score", never as zero."""

from __future__ import annotations

import asyncio

from training.engines.base import Sampling
from training.engines.remote.config import RemoteConfig
from training.errors import BadInput, IllegalMove, JudgeError
from training.rewards.judge import Judge, Verdict, transcript_of
from webapp.judgments import games
from webapp.judgments.models import JudgeModel, Target
from webapp.judgments.queues import services as queues

TIMEOUT_S = 120.0


def judge_target(pk: int) -> None:
    """Score a target if it waits for its model and no other worker has claimed it. Safe to call twice."""
    claimed = queues.claim(pk=pk)
    if claimed is None:
        return
    target = Target.objects.with_games().select_related("queue__judge__remote").filter(pk=pk).first()
    if target is None:  # cancelled
        return
    try:
        verdict = ask(_judge_of(target), target)
    except (JudgeError, BadInput, IllegalMove) as error:  # the last where the present rules do not allow its moves
        queues.record_verdict(target=target, verdict=None, why=str(error)[:2000])
    else:
        queues.record_verdict(target=target, verdict=verdict)


def _judge_of(target: Target) -> JudgeModel:
    assert target.queue.judge is not None, "only targets of a judge model are claimed"
    return target.queue.judge


def ask(model: JudgeModel, target: Target) -> Verdict:
    """Return what a judge model says of a target's seat, under the queue's codebook.

    Raises `JudgeError` without a usable answer, and what reading the game raises.
    """
    game = games.judgeable(target)
    transcript = transcript_of(game.scenario, game.moves)
    codebook, seat = target.codebook(), target.seat
    assert seat is not None, "judge models score seats"

    async def score(judge: Judge) -> Verdict:
        try:
            return await judge.score(transcript, codebook, seat, seed=target.pk)
        finally:
            await judge.close()

    return asyncio.run(score(judge_client(model)))


def judge_client(judge: JudgeModel) -> Judge:
    """Return a client for this judge; raise `BadInput` if its address is not allowed (any more)."""
    from training.engines.remote.chat import RemoteModel as Client  # the openai client is slow to import

    remote = judge.remote
    config = RemoteConfig(
        address=remote.address, model=remote.model, secret=remote.secret_name, timeout_s=TIMEOUT_S, retries=2,
        json_object=True,
    )  # fmt: skip
    sampling = Sampling(temperature=judge.temperature, max_tokens=1500)
    return Judge(Client(config), judge.name, sampling=sampling)
