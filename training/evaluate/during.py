"""What a training run measures of its learner: head-to-heads, calibration, and its distance from an equilibrium.

Head-to-heads, against the run's starting model or another opponent, are played every `evaluate.every` steps, and with
`evaluate.at_end` after the last one. A failure of an opponent's engine ends the run like a failure of the learner's
engine; the run's checkpoints stay. NashConv of the games `evaluate.nashconv` joins the metrics of every
`evaluate.nashconv_every`-th step and of the last one. A single agent of `qa_society` is asked every `calibration.every`
steps (`training.evaluate.calibration`). Where one of these two fails, a warning takes its place.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from training.config import RunConfig
from training.errors import BadInput, OutsideError, boundary
from training.evaluate.calibration.during import DuringCalibration
from training.evaluate.nashconv import Point, measure, model_policy, points
from training.evaluate.run import HeadToHead, common_opponent, draw, flat
from training.evaluate.summary import summarise
from training.players.contestants import check_replies
from training.rundir import RunDir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from training.evaluate.head_to_head import Match
    from training.learn.trainer import Trainer
    from training.records import Judgment


async def during(trainer: Trainer, step: int) -> dict[str, float]:
    """Return the numbers of a head-to-head of the learner after `step`."""
    _, matches, judgments = await _played(trainer)
    return flat(summarise(matches, judgments))


async def equilibrium(trainer: Trainer, states: Mapping[str, Mapping[str, Point]]) -> dict[str, float]:
    """Return `nashconv/GAME` and `exploitability/GAME` of the learner, in chips; `states` are `points` by game."""
    progress, sampling = trainer.progress, trainer.config.sampling
    numbers: dict[str, float] = {}
    for game, of_game in states.items():
        policy = await model_policy(
            of_game,
            trainer.context.engine,
            trainer.context.chat,
            lambda done, of: progress.beat(done=done, of=of),
            constrained=sampling.temperature if sampling.constrain else None,
        )
        distance = measure(game, policy)
        numbers |= {f"nashconv/{game}": distance["nash_conv"], f"exploitability/{game}": distance["exploitability"]}
    return numbers


async def at_end(trainer: Trainer) -> dict[str, Any]:
    """Play a head-to-head of the last checkpoint, whose weights the learner's engine has, and write its report.

    Raises `OutsideError` that says what is kept if the head-to-head fails.
    """
    run_dir = RunDir(trainer.progress.attempt.root.parents[1])
    command = f"python -m training run config.json --dir {run_dir.root.name}"
    try:
        with boundary():
            head_to_head, matches, judgments = await _played(trainer, run_dir.checkpoint_of(trainer.step))
            return head_to_head.report(matches, judgments, trainer.progress, command, step=trainer.step)
    except (OutsideError, BadInput) as error:
        raise OutsideError(
            f"the head-to-head after the last step failed: {error}; checkpoint {trainer.step} is saved, and resuming "
            "the run plays the head-to-head again"
        ) from error


async def _played(
    trainer: Trainer, checkpoint: Path | None = None
) -> tuple[HeadToHead, list[Match], dict[int, list[Judgment]]]:
    config, progress = trainer.config, trainer.progress
    learner = partial(trainer.context.player, sampling=config.head_to_head_sampling)
    run_dir, make = RunDir(progress.attempt.root.parents[1]), trainer.context.make_engine
    head_to_head = HeadToHead(config, run_dir, learner, checkpoint, make)
    async with aclosing(head_to_head):
        progress.phase("evaluating", done=0, of=len(head_to_head.pairs))
        return head_to_head, *await head_to_head.conversations(progress)


def run(config: RunConfig, run_dir: RunDir, attempt: int | None = None, *, supervised: bool = False) -> dict[str, Any]:
    """Start or resume a training run that plays the head-to-heads of its configuration.

    The result includes the report of the last one. Raises `BadInput`, before anything is written, also for a
    head-to-head that cannot be played, or questions that cannot be asked.
    """
    from training.learn import trainer

    if config.evaluate.every or config.evaluate.at_end:
        _, pairs = draw(config, run_dir)
        opponents = [config.evaluate.opponent or config.model.base, common_opponent(config, pairs)]
        for source in filter(None, opponents):
            check_replies(source, config.engine, config.head_to_head_sampling, pairs[0].scenario)
    calibration = DuringCalibration(config, run_dir) if config.calibration.sets else None
    evaluation: dict[str, Any] = {}
    states: dict[str, Mapping[str, Point]] = {game: points(game) for game in config.evaluate.nashconv}

    async def last(finished: trainer.Trainer) -> None:
        evaluation.update(await at_end(finished))

    result = trainer.run(
        config,
        run_dir,
        attempt,
        during,
        last if config.evaluate.at_end else None,
        partial(equilibrium, states=states) if states else None,
        calibration,
        supervised=supervised,
    )
    return result | evaluation
