"""The calibration of a training run: its learner as a single agent, before the first step and every so many steps.

Each evaluation is a file of the attempt, beside a file with its rows, and an event. The base model's answers are those
of the starting model, unless `calibration.base` names another one; a resumed run reads them from earlier rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from training import bases
from training.config import RunConfig
from training.evaluate.calibration.calibrator import Calibrator
from training.evaluate.calibration.measure import Agent
from training.evaluate.calibration.report import Evaluation, Row
from training.evaluate.calibration.run import BASE, agent_of, check_local
from training.learn.context import pick_device
from training.players.contestants import ContestantPool, window_of
from training.rundir import AttemptDir, RunDir
from training.store import atomic_file, dumps, read_lines, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from training.attempts.progress import Progress
    from training.engines.adapters import AdapterEngine
    from training.learn.trainer import Trainer


class DuringCalibration:
    """Asks the learner of a run. Raises `BadInput` for questions, and for a base model, that cannot be asked."""

    def __init__(self, config: RunConfig, run_dir: RunDir) -> None:
        self.config, self.run_dir = config, run_dir
        self._base = config.calibration.base or config.model.base
        check_local(self._base, "calibration.base")
        self._calibrator = Calibrator(config, run_dir)
        self._began: int | None = None

    async def __call__(self, trainer: Trainer) -> None:
        """Evaluate the present weights, and write the evaluation."""
        progress, calibrator = trainer.progress, self._calibrator
        progress.phase("evaluating")
        calibrator.on_game = lambda done, of: progress.beat(done=done, of=of)
        is_base = trainer.step == 0 and bases.resolve(self._base) == bases.resolve(self.config.model.base)
        if not (is_base or calibrator.has_base):
            await self._take_base(trainer.context.make_engine)
        evaluation, rows = await calibrator.evaluate(self._learner(trainer), trainer.step, is_base=is_base)
        write(progress, evaluation, rows)

    def due(self, step: int) -> bool:
        """Return whether the step is to be measured; where an attempt begins, an earlier one may have done so."""
        if self._began is None:
            self._began = step
        if step == self._began and any(attempt.calibration(step).is_file() for attempt in self._attempts()):
            return False
        return step % self.config.calibration.every == 0 or step == self.config.learn.steps

    def _attempts(self) -> Iterator[AttemptDir]:
        """Yield the attempts of the run, the newest first."""
        yield from (self.run_dir.attempt(number) for number in reversed(self.run_dir.attempts()))

    async def _take_base(self, make: Callable[..., AdapterEngine]) -> None:
        """Read the base model's answers from an earlier evaluation, or ask it in an engine that `make` makes."""
        earlier = (path for attempt in self._attempts() for path in attempt.calibrations())
        if (newest := next(earlier, None)) is not None:
            self._calibrator.restore(Row.from_dict(line) for line, _ in read_lines(rows_of(newest)))
            return
        device, sampling = pick_device(self.config.model.device).partition(":")[0], self.config.calibration_sampling
        async with aclosing(ContestantPool(self.config.engine, sampling, device, make=make)) as pool:
            contestant = pool.open(self._base, BASE)
            await self._calibrator.ask_base(agent_of(self.config, pool, self._base, contestant))

    def _learner(self, trainer: Trainer) -> Agent:
        context, sampling = trainer.context, self.config.calibration_sampling
        window = window_of(self.config.engine, sampling, context.learners.window)
        start = bases.read_info(bases.resolve(self.config.model.base)).name
        title = f"{context.info.name} step {trainer.step}" if trainer.step else start
        return Agent(title, context.engine, context.chat, sampling, window)


def rows_of(evaluation: Path) -> Path:
    """Return the file of rows beside that of an evaluation."""
    return evaluation.with_suffix(".jsonl")


def write(progress: Progress, evaluation: Evaluation, rows: Sequence[Row]) -> None:
    """Write the rows, then the evaluation, without which they are incomplete, and the event."""
    path = progress.attempt.calibration(evaluation.step)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(rows_of(path)) as file:
        file.writelines(dumps(row.to_dict()) + "\n" for row in rows)
    write_json(path, evaluation.to_dict())
    progress.event("calibration", **evaluation.to_dict(), rows=rows_of(path).name)
