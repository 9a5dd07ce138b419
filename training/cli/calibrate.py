"""`python -m training calibrate`: when a single agent searches, answers and hedges, by question set and tool."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from training.evaluate.calibration import run
from training.evaluate.calibration.report import Cell, Evaluation
from training.evaluate.intervals import CAUTION, Interval


def main(arguments: Namespace) -> dict[str, Any]:
    """Measure and return the evaluations with their conditions."""
    plan = run.Plan(source=arguments.source, model=arguments.model or "", step=arguments.step, folder=arguments.dir)
    return run.run(plan, _print_progress)


def _print_progress(done: int, of: int) -> None:
    """Print the progress: on a terminal in place, elsewhere about twenty lines per model."""
    if sys.stderr.isatty():
        print(f"\r{done} of {of} games", end="\n" if done == of else "", file=sys.stderr, flush=True)
    elif done == of or done % max(1, of // 20) == 0:
        print(f"{done} of {of} games", file=sys.stderr, flush=True)


def show(result: dict[str, Any]) -> str:
    """Return a few lines for each model, question set and tool."""
    evaluations = [Evaluation.from_dict(data) for data in result["evaluations"]]
    few = any(cell.f1.few for each in evaluations for cell in each.cells)
    caution = [f"caution: sets whose number of questions is {CAUTION}"] if few else []
    lines = [line for each in evaluations for line in _evaluation(each)]
    return "\n".join(["mean [95 % interval over questions]", *lines, *caution])


def _evaluation(evaluation: Evaluation) -> list[str]:
    step = f" (step {evaluation.step})" if evaluation.step else ""
    return [f"{evaluation.model}{step}", *(line for cell in evaluation.cells for line in _cell(cell))]


def _cell(cell: Cell) -> list[str]:
    tool = f"can search {cell.tool}" if cell.tool else "has no search"
    outside = "" if cell.in_distribution else ", out of distribution"
    failed = f", {cell.errors} failed" if cell.errors else ""
    worth = f"difference {_interval(cell.worth)}: the set {'counts' if cell.counts else 'does not count'}"
    lines = [
        f"  {cell.label}, the agent {tool}{outside}: {cell.questions} questions{failed}",
        f"    F1 {_interval(cell.f1)}, search rate {_interval(cell.search_rate)}, hedges {_interval(cell.hedge_rate)}",
        f"    F1 without searches {_interval(cell.unsearched_f1)}, {worth}",
    ]
    chances = [("search", cell.search), ("answer", cell.answer), ("hedge", cell.hedge)]
    lines.append("    " + ", ".join(f"P({name}) {_interval(chance)}" for name, chance in chances if chance))
    if (search := cell.search_calibration) is not None:
        lines.append(f"    search calibration: area {_interval(search.area)}, above shuffled {_interval(search.gain)}")
    answer = cell.answer_calibration
    top = ", ".join(f"top {percent} % {_interval(f1)}" for percent, f1 in answer.top.items())
    lines.append(f"    answer calibration: area {_interval(answer.area)}, above shuffled {_interval(answer.gain)}")
    return [*lines, f"      F1 of the {top}"]


def _interval(estimate: Interval) -> str:
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
