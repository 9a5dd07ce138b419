"""`python -m training league`: a run's payoff table (checkpoint × opponent) and its meta-strategy."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from training.evaluate.intervals import CAUTION
from training.evaluate.league import Entry, MetaStrategy, PayoffTable, Strategy, of_run
from training.rundir import RunDir


def main(arguments: Namespace) -> dict[str, Any]:
    """Return a table for each side of the learner; raise `BadInput` for a run without a league."""
    run_dir = RunDir(arguments.dir.absolute())
    return {"dir": str(run_dir.root), "tables": [table.to_dict() for table in of_run(run_dir)]}


def show(result: dict[str, Any]) -> str:
    """Return the tables with a line for each cell, then the weights."""
    return "\n\n".join("\n".join(_lines(PayoffTable.from_dict(table))) for table in result["tables"])


def _lines(table: PayoffTable) -> list[str]:
    seats = "one seat" if table.learner == "one" else table.learner
    head = f"learner: {seats}; results from {table.low:g} to {table.high:g}, 95 % interval over starts"
    meta = _weights(table.meta) if table.meta else ["no meta-strategy: no checkpoints have all played each other yet"]
    few = any(cell.result.few for cell in table.cells)
    caution = [f"caution: cells whose number of starts is {CAUTION}"] if few else []
    return [head, *map(_cell, table.cells), *caution, *meta]


def _cell(cell: Entry) -> str:
    value = cell.result
    failed = f", {cell.errors} failed" if cell.errors else ""
    return (
        f"step {cell.step:<7} {cell.opponent:24} {value.mean:8.3f} [{value.low:.3f}, {value.high:.3f}] "
        f"{cell.games} games{failed}"
    )


def _weights(meta: MetaStrategy) -> list[str]:
    names = [*(f"step {step}" for step in meta.checkpoints), *(f"against {name}" for name in meta.opponents)]
    ranks = _column(meta.alpha_rank) if meta.alpha_rank else ["not unique"] * len(names)
    rows = [("", "alpha-rank", "Nash"), *zip(names, ranks, _column(meta.nash), strict=True)]
    return [*(f"{name:37}{a:>11}{b:>8}" for name, a, b in rows), f"NashConv of the Nash weights: {meta.nash_conv:.6f}"]


def _column(strategy: Strategy) -> list[str]:
    return [f"{weight:.3f}" for weight in (*strategy.checkpoints, *strategy.opponents)]
