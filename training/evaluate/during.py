"""The head-to-head during training: the learner as it is now against what the run started from, or the named opponent.

Failures of the opponent's engine end the run as any engine's failure does.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from training.config import RunConfig
from training.evaluate.run import HeadToHead, drawn, flat
from training.evaluate.summary import summarise
from training.players.contestants import Contestant, check
from training.rundir import RunDir
from training.seeding import derive

if TYPE_CHECKING:
    from training.learn.trainer import Trainer


async def during(trainer: Trainer, step: int) -> dict[str, float]:
    """Return the head-to-head's numbers of the learner as it is after `step`."""
    config = trainer.config
    run_dir = RunDir(trainer.progress.attempt.root.parents[1])
    learner = partial(trainer.parts.player, sampling=config.head_to_head_sampling)
    head_to_head = HeadToHead(config, run_dir, learner=Contestant("learner", learner))
    async with aclosing(head_to_head):
        matches, judgments = await head_to_head.held(trainer.progress)
    return flat(summarise(matches, judgments, derive(config.seed, "intervals", step)))


def run(config: RunConfig, run_dir: RunDir, attempt: int | None = None, *, supervised: bool = False) -> dict[str, Any]:
    """Run or go on with a training run that holds a head-to-head every `evaluate.every` steps.

    Raises `BadInput` before anything is written, for a head-to-head that could not be held, too.
    """
    from training.learn import trainer

    if config.evaluate.every:
        drawn(config, run_dir)
        check(config.evaluate.opponent or config.model.base)
    return trainer.run(config, run_dir, attempt, during, supervised=supervised)
