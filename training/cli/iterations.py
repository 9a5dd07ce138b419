"""`python -m training iterations`: the crew's win rates at both ends of a run's phases, the exploitability curve."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from training.errors import BadInput
from training.evaluate.iterations import Iteration, Point, iterations
from training.rundir import RunDir


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the iterations; raise `BadInput` for a run in which no phase has met an opponent."""
    run_dir = RunDir(arguments.dir.absolute())
    entries = iterations(run_dir, arguments.pooled)
    if not entries:
        why = "no phase has played a game with roles against an opponent other than the learner itself"
        raise BadInput(why, "phases")
    return {"dir": str(run_dir.root), "iterations": [entry.to_dict() for entry in entries]}


def show(result: dict[str, Any]) -> str:
    """Return a line for each iteration."""
    entries = [Iteration.from_dict(entry) for entry in result["iterations"]]
    return "\n".join(("the crew's win rate, 95 % interval over starts", *map(_line, entries)))


def _line(entry: Iteration) -> str:
    beside = f" beside {entry.partner}" if entry.partner else ""
    who = f"{entry.phase}: {', '.join(entry.side)}{beside} against {entry.opponent}"
    return f"{who}\n  {_rate(entry.begin)}\n  {_rate(entry.end)}{'' if entry.complete else ', so far'}"


def _rate(point: Point) -> str:
    rate, steps = point.crew, f"{point.first}-{point.last}"
    return f"steps {steps:9} {rate.mean:.3f} [{rate.low:.3f}, {rate.high:.3f}] {point.games} games"
