"""A run's league: the payoff table as a grid of checkpoints and opponents, and the weights of the meta-strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from training import bases
from training.evaluate.league import Entry, MetaStrategy, PayoffTable, from_events, past_step
from training.opponent_sections import PAST
from webapp.runs.models import Checkpoint, Run

SHOWN = 24
"""Checkpoints of a table that the page shows at first, the newest ones."""
SHADES = 4
"""Shades of a cell to either side of an even result."""


@dataclass(frozen=True)
class Shaded:
    """One cell with its shade, from `down-4` (all is lost) over `even` to `up-4`."""

    entry: Entry
    css: str


@dataclass(frozen=True)
class Line:
    """One checkpoint's row: its checkpoint if that still exists, and its cells by opponent, None where it met none."""

    step: int
    checkpoint: Checkpoint | None
    cells: list[tuple[str, Shaded | None]]

    @property
    def itself(self) -> str:
        """The name of this checkpoint's column."""
        return f"{PAST} {self.step}"


@dataclass(frozen=True)
class Weight:
    """A checkpoint or an opponent with its weights in the meta-strategy; None where α-rank is not unique."""

    name: str
    alpha_rank: float | None
    nash: float


@dataclass(frozen=True)
class Grid:
    """The table of one side of the learner as the page shows it."""

    table: PayoffTable
    opponents: list[str]
    lines: list[Line]
    weights: list[tuple[str, list[Weight]]]

    @property
    def hidden(self) -> int:
        """How many checkpoints are not among the lines."""
        return len(self.table.checkpoints) - len(self.lines)

    @property
    def seats(self) -> str:
        """The learner's seats in words."""
        return "one seat" if self.table.learner == "one" else self.table.learner


def tables(run: Run) -> list[PayoffTable]:
    """Return the tables of a run's league, one for each side of the learner; none before the first evaluation."""
    named = names(run)
    cells = (cell for event in run.evaluations("league") for cell in event.get("cells", ()))
    return from_events({**cell, "opponent": named.get(cell["opponent"], cell["opponent"])} for cell in cells)


def names(run: Run) -> dict[str, str]:
    """Return what the site calls opponents that the run's files call by their folders: base models that were added."""
    sources = [entry["source"] for entry in run.config.get("opponents", ())]
    added = Checkpoint.objects.filter(name__in=sources, kind=Checkpoint.Kind.BASE).exclude(name__in=bases.REGISTRY)
    return {Path(checkpoint.path).name: checkpoint.name for checkpoint in added}


def grids(run: Run, *, whole: bool = False) -> list[Grid]:
    """Return the tables as the page shows them: the newest checkpoints and what they met, or all."""
    saved = {checkpoint.step: checkpoint for checkpoint in run.checkpoints.all()}
    return [_grid(table, saved, 0 if whole else SHOWN) for table in tables(run)]


def find(run: Run, step: int, opponent: str, learner: str) -> Entry | None:
    """Return one cell; None where these two have not met."""
    entries = (entry for table in tables(run) if table.learner == learner for entry in table.cells)
    return next((entry for entry in entries if (entry.step, entry.opponent) == (step, opponent)), None)


def _grid(table: PayoffTable, saved: Mapping[int, Checkpoint], newest: int) -> Grid:
    steps = table.checkpoints[-newest:]
    entries = {(e.step, e.opponent): Shaded(e, _shade(e.score)) for e in table.cells if e.step in steps}
    met = {opponent for _, opponent in entries}
    opponents = [opponent for opponent in table.opponents if opponent in met]
    lines = [Line(step, saved.get(step), [(name, entries.get((step, name))) for name in opponents]) for step in steps]
    return Grid(table, opponents, lines, _weights(table.meta) if table.meta else [])


def _weights(meta: MetaStrategy) -> list[tuple[str, list[Weight]]]:
    ranked, nash = meta.alpha_rank, meta.nash
    steps = [f"step {step}" for step in meta.checkpoints]
    return [
        ("Checkpoint", _rows(steps, ranked.checkpoints if ranked else None, nash.checkpoints)),
        ("Opponent", _rows(meta.opponents, ranked.opponents if ranked else None, nash.opponents)),
    ]


def _rows(names: Sequence[str], ranked: Sequence[float] | None, nash: Sequence[float]) -> list[Weight]:
    ranks: Sequence[float | None] = ranked or [None] * len(names)
    return [Weight(*row) for row in zip(names, ranks, nash, strict=True)]


def _shade(score: float) -> str:
    """Return the shade of a result from 0 to 1; within a 16th of an even one there is none."""
    level = round((score - 0.5) * 2 * SHADES)
    return "even" if level == 0 else f"{'up' if level > 0 else 'down'}-{abs(level)}"


def opponent_checkpoint(run: Run, opponent: str) -> Checkpoint | None:
    """Return the checkpoint that an opponent is: a past self of this run, or one that has the name."""
    step = past_step(opponent)
    if step is None:
        return Checkpoint.objects.filter(name=opponent).first()
    return run.checkpoints.filter(step=step).first()
