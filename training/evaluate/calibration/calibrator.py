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
from training.evaluate.calibration.questions import Asked
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
        self.asked = questions.read(config, run_dir)
        self._tool = search_tool(config.search, [start for asked in self.asked for start in asked.starts])
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
        for asked in self.asked:
            self._take(asked, await self._ask(base, asked, (UNSEARCHED, SEARCHED)))

    async def evaluate(self, agent: Agent, step: int, *, is_base: bool = False) -> tuple[Evaluation, list[Row]]:
        """Return the evaluation of a model and its rows; the base model must be asked before, or `agent` be it."""
        self._done = 0
        cells: list[Cell] = []
        rows: list[Row] = []
        for asked in self.asked:
            answers = await self._ask(agent, asked, WAYS if is_base else (PLAYED, UNSEARCHED))
            if is_base:
                self._take(asked, answers)
            of_set = self._rows(asked, answers)
            cells.append(self._cell(asked, answers, of_set))
            rows += of_set
        return Evaluation(step=step, model=agent.title, cells=tuple(cells)), rows

    async def _ask(self, agent: Agent, asked: Asked, ways: Collection[str]) -> Answers:
        config = self.config
        ways = [way for way in ways if asked.tool or way != SEARCHED]
        total = sum(len(each.starts) * len(ways) for each in self.asked) * config.calibration.draws

        def on_game() -> None:
            self._done += 1
            self.on_game(self._done, total)

        seed = derive(config.seed, "calibration", asked.label, asked.tool)
        conditions = Conditions(
            draws=config.calibration.draws,
            limited=config.calibration.limited,
            lanes=config.rollout.lanes or config.engine.max_running,
            rules=RolloutPolicy(seed, 0, config.rollout.retries, config.rollout.on_refused),
            tool=self._tool,
            on_reply=self.on_reply,
            on_game=on_game,
        )
        return await ask(agent, asked, ways, conditions)

    def _take(self, asked: Asked, answers: Answers) -> None:
        for start in asked.starts:
            f1 = BaseF1(answers.f1(start.id, SEARCHED), answers.f1(start.id, UNSEARCHED))
            self._base[asked.label, asked.tool, start.id] = f1

    def _rows(self, asked: Asked, answers: Answers) -> list[Row]:
        """Return the rows of the questions of which no game failed, neither the model's nor the base model's."""
        unknown = BaseF1(None, None)
        rows = (
            row_of(asked, start.id, answers, self._base.get((asked.label, asked.tool, start.id), unknown))
            for start in asked.starts
        )
        return [row for row in rows if row is not None]

    def _cell(self, asked: Asked, answers: Answers, rows: list[Row]) -> Cell:
        if not rows:
            raise OutsideError(
                f"no question of {asked.label} was measured: {answers.failure or 'the base model failed'}"
            )
        errors = len(asked.starts) - len(rows)
        return cell_of(rows, errors, in_distribution=asked.in_distribution, seed=self.config.seed)
