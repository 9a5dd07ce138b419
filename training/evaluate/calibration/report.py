"""The numbers of one evaluation: a row for each question, and a cell for each question set and tool.

Intervals are at 95 % over questions. Raises `BadInput` for a cell without a question that was measured.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

from training.errors import BadInput
from training.evaluate.calibration import curves
from training.evaluate.calibration.curves import Calibration
from training.evaluate.intervals import UNIT, Interval, interval, paired
from training.reading import Record, Version

WORTH = 0.05
"""By how much, in F1, the model must beat itself without searches on a question set that counts."""


class BaseF1(NamedTuple):
    """The base model's F1 on one question after a search and without one; None where it is not known."""

    searched: float | None
    unsearched: float | None


class Row(Record):
    """One question, asked of one agent with one tool. Numbers of several draws are their means.

    `search`, `answer` and `hedge` are the probabilities of the first action, relative to each other, and `legal` that
    of any of them; `search` is None for an agent without a tool. `f1`, `searched` (the share of draws with a search)
    and `hedged` are of the game as the model plays it, `text` is the final answer of one draw. `unsearched_f1` is the
    model's own F1 without a search. `base_searched_f1` and `base_unsearched_f1` are those of the base model after a
    search and without one, None without a tool.
    """

    label: str
    tool: str
    question: str
    search: float | None
    answer: float
    hedge: float
    legal: float
    f1: float
    searched: float
    hedged: float
    text: str
    unsearched_f1: float
    base_searched_f1: float | None
    base_unsearched_f1: float | None

    @property
    def base(self) -> BaseF1:
        """The base model's F1."""
        return BaseF1(self.base_searched_f1, self.base_unsearched_f1)

    @property
    def search_logit(self) -> float:
        """The log-odds of a search, which rank questions as P(search) does."""
        return _log_odds(self.search or 0.0, self.answer + self.hedge)

    @property
    def answer_logit(self) -> float:
        """The log-odds of P(answer) / (P(answer) + P(hedge))."""
        return _log_odds(self.answer, self.hedge)


def _log_odds(first: float, second: float) -> float:
    """Return log(first / second), finite and without the last digits, in which equal chances differ by rounding.

    Unlike a probability it does not saturate near 1, so that near-certain questions keep their order.
    """
    return round(math.log(max(first, sys.float_info.min)) - math.log(max(second, sys.float_info.min)), 9)


class Cell(Record):
    """One question set with one tool, "" for an agent without one; `errors` questions could not be measured.

    `worth` is the model's F1 minus its F1 without searches, on the same questions; the set `counts` with this tool if
    that is at least `WORTH` and its interval is above 0. `search_calibration` is None without a tool.
    """

    label: str
    tool: str
    in_distribution: bool
    questions: int
    errors: int
    f1: Interval
    search_rate: Interval
    hedge_rate: Interval
    unsearched_f1: Interval
    worth: Interval
    counts: bool
    search: Interval | None
    answer: Interval
    hedge: Interval
    legal: Interval
    search_calibration: Calibration | None
    answer_calibration: Calibration


class Evaluation(Record):
    """All cells of one model after a training step; 0 is the model that the run started from, only prompted."""

    version: Version = 1
    step: int
    model: str
    cells: tuple[Cell, ...]


def cell_of(rows: Sequence[Row], errors: int, *, in_distribution: bool, seed: int = 0) -> Cell:
    """Return the cell of the rows of one question set and tool; `seed` is that of the bootstrap."""
    if not rows:
        raise BadInput(f"none of the {errors} questions could be measured", "calibration.sets")
    f1, unsearched = [row.f1 for row in rows], [row.unsearched_f1 for row in rows]
    worth = paired(f1, unsearched, scale=UNIT)
    return Cell(
        label=rows[0].label,
        tool=rows[0].tool,
        in_distribution=in_distribution,
        questions=len(rows),
        errors=errors,
        f1=_mean(f1),
        search_rate=_mean([row.searched for row in rows]),
        hedge_rate=_mean([row.hedged for row in rows]),
        unsearched_f1=_mean(unsearched),
        worth=worth,
        counts=worth.mean >= WORTH and worth.low > 0,
        search=_mean([row.search for row in rows if row.search is not None]) if rows[0].tool else None,
        answer=_mean([row.answer for row in rows]),
        hedge=_mean([row.hedge for row in rows]),
        legal=_mean([row.legal for row in rows]),
        search_calibration=_of_searches(rows, seed) if rows[0].tool else None,
        answer_calibration=curves.answer_calibration([row.answer_logit for row in rows], unsearched, seed),
    )


def _mean(values: Sequence[float]) -> Interval:
    return interval(values, scale=UNIT)


def _of_searches(rows: Sequence[Row], seed: int) -> Calibration:
    whole = [
        (row.search_logit, row.base_searched_f1, row.base_unsearched_f1)
        for row in rows
        if row.base_searched_f1 is not None and row.base_unsearched_f1 is not None
    ]
    scores, searched, unsearched = zip(*whole, strict=True)
    return curves.search_calibration(scores, searched, unsearched, seed)
