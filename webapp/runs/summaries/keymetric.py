"""A run's key metric, shown in tables, with a sparkline of up to 60 values at a regular stride."""

from __future__ import annotations

from typing import Any

from webapp.runs.models import Run

LONGEST = 60
# The first of these that a step's metrics hold is the key metric of its kind of run.
NAMES: dict[str, tuple[str, ...]] = {
    "train": ("reward", "loss"),
    "sft": ("loss",),
    "eval": ("difference.points", "difference.sotopia.mean", "difference.won", "difference.return", "shared.agreement"),
    "suite": (),
    "serve": (),
}


def name_of(kind: str, values: dict[str, Any]) -> str | None:
    """The key metric's name among these values."""
    return next((name for name in NAMES.get(kind, ()) if name in values), None)


def add(run: Run, step: int, values: dict[str, Any]) -> None:
    """Add a step's key metric to the run, without saving it.

    The sparkline is `[stride, v1, v2, …]`: the values at steps stride, 2·stride, …; the stride doubles when it is full.
    A step without the metric repeats the previous value.
    """
    name = name_of(run.kind, values)
    if name is None:
        return
    run.key_metric = float(values[name])
    stride, line = (int(run.sparkline[0]), list(run.sparkline[1:])) if run.sparkline else (1, [])
    while step > stride * LONGEST:
        stride, line = stride * 2, line[1::2]
    if step % stride == 0:
        before = step // stride - 1
        filler = [line[-1] if line else run.key_metric] * (before - len(line))
        line = [*line[:before], *filler, run.key_metric]
    run.sparkline = [stride, *line]


def cut(sparkline: list[float], step: int) -> list[float]:
    """The sparkline up to `step`, from which another attempt continues."""
    return [sparkline[0], *sparkline[1 : 1 + step // int(sparkline[0])]] if sparkline else []
