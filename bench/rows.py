"""What the parts of the miniature share: its task, result rows stored in folders, means over seeds, and
interruption.

`stored_row` raises `BadInput` for a folder that was measured with other settings.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from functools import reduce
from importlib import import_module
from operator import getitem
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from training.errors import BadInput
from training.store import loads, write_json

if TYPE_CHECKING:
    from training.rundir import RunDir

INTERRUPTED = 130
UNWATCHED = {
    **dict.fromkeys(("failing", "hacking_failing", "legality_fall", "clipfrac", "silent", "waits"), 1.0),
    **dict.fromkeys(("entropy_rise", "kl_ceiling", "hacking_length", "held_out_gap"), 1e6),
    **dict.fromkeys(("entropy_fall", "advantage_drift"), 0.0),
}
"""Thresholds with which no rule of the watchdog stops a run: where a collapse is a result."""


def stored_row(folder: Path, wanted: Mapping[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the row that `folder` holds from an earlier call, else the result of `measure` with `wanted` added."""
    if (file := folder / "row.json").is_file():
        row: dict[str, Any] = loads(file.read_text())
        if changed := [name for name in wanted if row.get(name) != wanted[name]]:
            raise BadInput(f"{folder} was measured with another {changed[0]}: choose a new directory", "--dir")
        return row
    for part in ("train", "eval"):  # left by an interrupted call
        shutil.rmtree(folder / part, ignore_errors=True)
    row = {**measure(), **wanted}
    write_json(file, row)
    return row


def number_in(row: Mapping[str, Any], *where: str) -> float:
    """Return the number at a path of keys."""
    number: Any = reduce(getitem, where, row)
    return float(number)


def over_seeds(name: str, values: list[float]) -> dict[str, Any]:
    """Return a mean over seeds with its Student's t interval (95 %), absent for a single seed."""
    from training.evaluate import intervals

    estimate: dict[str, Any] = {name: fmean(values), "n": len(values)}
    return estimate | ({"interval": list(intervals.over_seeds(values))} if len(values) > 1 else {})


def against(values: dict[str, list[float]], forms: list[str], what: str) -> dict[str, Any]:
    """Return the differences of every form from the first one, paired by seed."""
    first = forms[0]
    return {
        f"{what}_minus_{first}": {
            form: over_seeds("mean", [a - b for a, b in zip(values[form], values[first], strict=True)])
            for form in forms[1:]
        }
    }


def bargaining(seed: int) -> dict[str, Any]:
    """Return the configuration of `tiny` bargaining over items, without the learning."""
    from training import samples

    return {
        "seed": seed,
        "model": {"base": "tiny", "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": "negotiation"},
        "data": {"path": str(samples.path("items"))},
        "sampling": {"max_tokens": 48},
    }


def run(settings: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], RunDir]:
    """Run a configuration of any kind in the run directory `folder`; return its outcome and the directory.

    The outcome is that of the kind of run, with `wall_s` and `cpu_s`. Raises `KeyboardInterrupt` if Ctrl-C ended it.
    """
    from training import config as configs
    from training.attempts import start
    from training.cli.runs import RUNNERS
    from training.rundir import RunDir

    began, cpu, run_dir = time.monotonic(), time.process_time(), RunDir(folder)
    config = start.start(configs.parse(dict(settings)), run_dir, folder.parent)
    outcome = unless_interrupted(import_module(RUNNERS[config.kind]).run(config, run_dir))
    spent = {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(time.process_time() - cpu, 1)}
    return outcome | spent, run_dir


def unless_interrupted(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a run; raise `KeyboardInterrupt` if Ctrl-C ended it. A watchdog's stop is an outcome."""
    if outcome["exit"] == INTERRUPTED:
        raise KeyboardInterrupt
    return outcome


def metrics_of(run_dir: Any) -> list[dict[str, Any]]:
    """Return a run's metrics, one mapping per step; a later attempt replaces earlier ones after its first step."""
    from training.cli.export_metrics import steps

    return [{"step": step, **values} for step, _, values in steps(run_dir)]
