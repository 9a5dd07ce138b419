"""`python -m training run|sft|eval|suite|resume`: runs in a run directory, each kind by the `run` of its module.

Ctrl-C asks a run to save a checkpoint and leave with exit code 130, SIGTERM with 0; a second one ends it at once.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from training import bases, suites
from training import config as configs
from training.attempts.start import reopen, start
from training.config import RunConfig
from training.errors import BadInput
from training.evaluate.intervals import CAUTION, Interval
from training.evaluate.suite.rows import Row
from training.evaluate.summary import Summary
from training.rundir import RunDir
from training.supervised import held_input

RUNNERS = {
    "train": "training.evaluate.during",
    "sft": "training.learn.sft.cold_start",
    "eval": "training.evaluate.run",
    "suite": "training.evaluate.suite.run",
}
"""Module of each kind of run; `run(config, run_dir, attempt, supervised=…)` returns the result with its exit code."""
REPORT = {"summary", "verdict", "by_scenario", "shared_by_scenario", "conditions", "rows"}
"""What a head-to-head or a suite adds to a run's result."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Start a run in a new directory, or resume one; raise `BadInput` without changing anything."""
    held_input()  # before importing torch, which takes seconds in which the supervisor may exit
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        run_dir = RunDir(arguments.dir.absolute())
        if arguments.resume:
            return _run_attempt(reopen(run_dir), run_dir, arguments)
        config = _config(arguments.config, arguments.kind)
        return _begin(_with_model(config, arguments) if arguments.kind == "suite" else config, run_dir, arguments)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _begin(config: RunConfig, run_dir: RunDir, arguments: Namespace) -> dict[str, Any]:
    new_folders = [folder for folder in (run_dir.root, *run_dir.root.parents) if not folder.exists()]
    if not new_folders and (not run_dir.root.is_dir() or any(run_dir.root.iterdir())):
        raise BadInput("not an empty directory; choose another, or continue a run with `resume`", str(arguments.dir))
    try:
        _make(run_dir.root)
        return _run_attempt(start(config, run_dir, arguments.config.absolute().parent), run_dir, arguments)
    except BadInput:
        _take_back(run_dir, new_folders)
        raise


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"the folder cannot be made: {error.strerror}", str(folder)) from error
    if not os.access(folder, os.W_OK):
        raise BadInput("the folder may not be written to", str(folder))


def _config(path: Path, kind: str | None) -> RunConfig:
    """Read the configuration; `kind` is the kind that the command requires, None = the file's."""
    config = configs.load(path)
    if kind is None or config.kind == kind:
        return config
    if "kind" in config.model_fields_set:
        raise BadInput(f"the run is of kind {config.kind!r}, not {kind!r}; use `run`", f"{path}: kind")
    return configs.parse(config.model_dump(mode="json", exclude_unset=True) | {"kind": kind}, str(path))


def _with_model(config: RunConfig, arguments: Namespace) -> RunConfig:
    """Return the configuration of a suite with what the command line states: the model, games and seed."""
    data = suites.for_model(config.to_dict(), _source(arguments.model), games=arguments.games, seed=arguments.seed)
    try:
        data["suite"] = suites.beside_side(data["suite"], _source(arguments.opponent), _source(arguments.partner))
        data |= suites.judged_by(data, arguments.judge or "")
    except BadInput as error:
        raise BadInput(error.why, f"--{error.where}") from error
    data["speaker"] = suites.spoken_by(data["speaker"], _source(arguments.speaker))
    return configs.parse(data, str(arguments.config))


def _source(name: str | None) -> str:
    """Return a folder as an absolute path, and any other name as it is."""
    return str(Path(name).absolute()) if name and bases.is_folder(name) else name or ""


def _run_attempt(config: RunConfig, run_dir: RunDir, arguments: Namespace) -> dict[str, Any]:
    result: dict[str, Any]
    if config.kind == "train" and not config.cluster.alone and not (arguments.supervised or arguments.driver):
        from training.cli.resuming import run_to_the_end

        result = run_to_the_end(run_dir, arguments.attempt)
    else:
        if config.kind in ("train", "sft"):  # others may need no model of this machine
            from training.cluster.worker import skip_unused

            skip_unused()
        runner = import_module(RUNNERS[config.kind])
        result = runner.run(config, run_dir, arguments.attempt, supervised=arguments.supervised)
    return {"kind": config.kind, "dir": str(run_dir.root), **result}


def _take_back(run_dir: RunDir, new_folders: Sequence[Path]) -> None:
    """Remove the files of a refused start; `new_folders` are the folders that it created, deepest first."""
    if run_dir.config.is_file():
        run_dir.config.unlink()
    for folder in (run_dir.inputs, run_dir.root / "attempts"):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in new_folders:
        if folder.is_dir():
            folder.rmdir()


def show(result: dict[str, Any]) -> str:
    """Return the result of the run, one fact per line; for a head-to-head, one number per line."""
    facts = {name: value for name, value in result.items() if name not in REPORT}
    lines = [f"{name}: {value}" for name, value in facts.items() if value not in ("", None)]
    if "summary" in result:
        lines += [*_head_to_head(Summary.from_dict(result["summary"])), result["verdict"]]
    if "rows" in result:
        rows = [Row.from_dict(row) for row in result["rows"]]
        few = any(row.raw.few for row in rows if row.raw is not None)
        caution = [f"caution: rows with n {CAUTION}"] if few else []
        lines += ["game, opponent, seat, mean return [95 % interval]", *map(_row, rows), *caution]
    return "\n".join(lines)


def _head_to_head(summary: Summary) -> list[str]:
    """Return both models' means with the interval of their difference, then the numbers of whole conversations."""
    lines = [
        f"{summary.used} of {summary.conversations} conversations count; scenarios: {summary.scenarios}",
        *([f"caution: {summary.caution}"] if summary.caution else []),
        f"{'':28}{'a':>9}{'b':>9}  a - b",
    ]
    for name, lead in summary.difference.items():
        lines.append(f"{name:28}{summary.a[name].mean:9.3f}{summary.b[name].mean:9.3f}  {_interval(lead)}")
    return [*lines, *(f"{name:28}{'':18}  {_interval(value)}" for name, value in summary.shared.items())]


def _interval(estimate: Interval) -> str:
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}] n = {estimate.n}"


def _row(row: Row) -> str:
    """Return one line of a suite: game, opponent, seat, return, normalised value, legal replies, what is missing."""
    facts = [f"{row.title:18}{row.opponent:16}{row.who:10}"]
    if row.exact is not None:
        facts += [f"NashConv {row.exact['nash_conv']:.4f}", f"exploitability {row.exact['exploitability']:.4f}"]
    if row.raw is not None:
        facts.append(_interval(row.raw))
    if row.opposite is not None and row.joint is not None:
        facts += [f"opposite {_interval(row.opposite)}", f"all seats {_interval(row.joint)}"]
    if row.normalised is not None:
        facts.append(f"normalised {row.normalised.mean:.1f} [{row.normalised.low:.1f}, {row.normalised.high:.1f}]")
    if row.legal_rate is not None:
        facts.append(f"legal {row.legal_rate.mean:.2f}")
    if row.unavailable or row.errors:
        facts.append(row.unavailable or f"errors: {row.errors}")
    return "  ".join(facts)
