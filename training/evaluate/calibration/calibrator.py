"""Evaluates models, one after the other, on the question sets of a configuration, with the answers of one base model.

Raises `BadInput` for sets that cannot be asked, and `OutsideError` where no question of a set could be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from training.config import RunConfig
from training.errors import OutsideError
from training.evaluate.calibration import questions
from training.evaluate.calibration.measure import (
    PLAYED,
    SEARCHED,
    UNSEARCHED,
    WAYS,
    Agent,
    Answers,
    Conditions,
    ask,
    row_of,
)
from training.evaluate.calibration.questions import EvaluationSet
from training.evaluate.calibration.report import BaseF1, Cell, Evaluation, Row, cell_of
from training.players.base import Reply
from training.rollout import RolloutPolicy
from training.rollout.search import search_tool
from training.rundir import RunDir
from training.seeding import derive

OnGame = Callable[[int, int], None]
"""Called after each game with (games done, games of this evaluation)."""


class Calibrator:
    """The questions of a configuration with the search, and what the base model answers to them."""

    def __init__(
        self,
        config: RunConfig,
        run_dir: RunDir,
        *,
        on_reply: Callable[[Reply], None] = lambda reply: None,
        on_game: OnGame = lambda done, of: None,
    ) -> None:
        self.config = config
        self.evaluation_sets = questions.read(config, run_dir)
        self._tool = search_tool(
            config.search, [start for evaluation_set in self.evaluation_sets for start in evaluation_set.starts]
        )
        self.on_reply, self.on_game = on_reply, on_game
        self._base: dict[tuple[str, str, str], BaseF1] = {}
        self._done = 0

    @property
    def has_base(self) -> bool:
        """Whether the base model's answers are known."""
        return bool(self._base)

    def restore(self, rows: Iterable[Row]) -> None:
        """Take the base model's answers from the rows of an earlier evaluation."""
        self._base |= {(row.label, row.tool, row.question): row.base for row in rows}

    async def ask_base(self, base: Agent) -> None:
        """Ask the base model, where it is not evaluated itself."""
        self._done = 0
        for evaluation_set in self.evaluation_sets:
            self._take(evaluation_set, await self._ask(base, evaluation_set, (UNSEARCHED, SEARCHED)))

    async def evaluate(self, agent: Agent, step: int, *, is_base: bool = False) -> tuple[Evaluation, list[Row]]:
        """Return the evaluation of a model and its rows; the base model must be asked before, or `agent` be it."""
        self._done = 0
        cells: list[Cell] = []
        rows: list[Row] = []
        for evaluation_set in self.evaluation_sets:
            answers = await self._ask(agent, evaluation_set, WAYS if is_base else (PLAYED, UNSEARCHED))
            if is_base:
                self._take(evaluation_set, answers)
            of_set = self._rows(evaluation_set, answers)
            cells.append(self._cell(evaluation_set, answers, of_set))
            rows += of_set
        return Evaluation(step=step, model=agent.title, cells=tuple(cells)), rows

    async def _ask(self, agent: Agent, evaluation_set: EvaluationSet, ways: Collection[str]) -> Answers:
        config = self.config
        ways = [way for way in ways if evaluation_set.tool or way != SEARCHED]
        total = sum(len(each.starts) * len(ways) for each in self.evaluation_sets) * config.calibration.draws

        def on_game() -> None:
            self._done += 1
            self.on_game(self._done, total)

        seed = derive(config.seed, "calibration", evaluation_set.label, evaluation_set.tool)
        conditions = Conditions(
            draws=config.calibration.draws,
            limited=config.calibration.limited,
            lanes=config.rollout.lanes or config.engine.max_running,
            rules=RolloutPolicy(seed, 0, config.rollout.retries, config.rollout.on_refused),
            tool=self._tool,
            on_reply=self.on_reply,
            on_game=on_game,
        )
        return await ask(agent, evaluation_set, ways, conditions)

    def _take(self, evaluation_set: EvaluationSet, answers: Answers) -> None:
        for start in evaluation_set.starts:
            f1 = BaseF1(answers.f1(start.id, SEARCHED), answers.f1(start.id, UNSEARCHED))
            self._base[evaluation_set.label, evaluation_set.tool, start.id] = f1

    def _rows(self, evaluation_set: EvaluationSet, answers: Answers) -> list[Row]:
        """Return the rows of the questions of which no game failed, neither the model's nor the base model's."""
        unknown = BaseF1(None, None)
        label, tool = evaluation_set.label, evaluation_set.tool
        rows = (
            row_of(evaluation_set, start.id, answers, self._base.get((label, tool, start.id), unknown))
            for start in evaluation_set.starts
        )
        return [row for row in rows if row is not None]

    def _cell(self, evaluation_set: EvaluationSet, answers: Answers, rows: list[Row]) -> Cell:
        if not rows:
            raise OutsideError(
                f"no question of {evaluation_set.label} was measured: {answers.failure or 'the base model failed'}"
            )
        errors = len(evaluation_set.starts) - len(rows)
        return cell_of(rows, errors, in_distribution=evaluation_set.in_distribution, seed=self.config.seed)
