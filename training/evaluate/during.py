"""The head-to-head during training: the learner against the run's starting model, or another opponent.

A failure of an opponent's engine ends the run like a failure of the learner's engine.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from training.config import RunConfig
from training.evaluate.run import HeadToHead, common_opponent, draw, flat
from training.evaluate.summary import summarise
from training.players.contestants import Contestant, check
from training.rundir import RunDir

if TYPE_CHECKING:
    from training.learn.trainer import Trainer


async def during(trainer: Trainer, step: int) -> dict[str, float]:
    """Return the numbers of a head-to-head of the learner after `step`."""
    config = trainer.config
    run_dir = RunDir(trainer.progress.attempt.root.parents[1])
    learner = partial(trainer.context.player, sampling=config.head_to_head_sampling)
    head_to_head = HeadToHead(config, run_dir, learner=Contestant("learner", learner))
    async with aclosing(head_to_head):
        matches, judgments = await head_to_head.conversations(trainer.progress)
    return flat(summarise(matches, judgments))


def run(config: RunConfig, run_dir: RunDir, attempt: int | None = None, *, supervised: bool = False) -> dict[str, Any]:
    """Start or resume a training run that plays a head-to-head every `evaluate.every` steps.

    Raises `BadInput`, before anything is written, also for a head-to-head that cannot be played.
    """
    from training.learn import trainer

    if config.evaluate.every:
        _, pairs = draw(config, run_dir)
        check(config.evaluate.opponent or config.model.base)
        if common_opponent(config, pairs):
            check(config.common_opponent)
    return trainer.run(config, run_dir, attempt, during, supervised=supervised)
