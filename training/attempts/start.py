"""Creates a run directory: copies the inputs into it, named by hash, and writes the resolved configuration.

Raises `BadInput`, and writes nothing, for a directory that already has a run or for a missing input.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from training import run_checks, samples, suites
from training.config import RunConfig, load, resolve
from training.errors import BadInput
from training.rundir import RunDir
from training.store import sha256, write_json


def start(config: RunConfig, run_dir: RunDir, folder: Path) -> RunConfig:
    """Create `run_dir` and return its configuration; `folder` is the base of the configuration's relative paths."""
    if run_dir.attempts() or run_dir.config.exists():
        raise BadInput("the directory has a run already; `resume` it, or choose another", str(run_dir.root))
    config = resolve(config, folder)
    run_checks.check_cluster(config)

    def copied(path: str, game: str) -> str:
        return _take_in(path or str(samples.write(game, run_dir.inputs)), run_dir)

    mixture = tuple(
        part.model_copy(update={"path": copied(part.path or config.data.path, part.game)}) for part in config.mixture
    )
    evaluate = config.evaluate.model_copy(update={"path": _take_in(config.evaluate.path, run_dir)})
    sets = tuple(each.model_copy(update={"path": _take_in(each.path, run_dir)}) for each in config.calibration.sets)
    calibration = config.calibration.model_copy(update={"sets": sets})
    config = config.model_copy(update={"evaluate": evaluate, "mixture": mixture, "calibration": calibration})
    if config.kind == "suite":
        suite = suites.with_starts(config.suite, run_dir.inputs)
        tasks = tuple(task.model_copy(update={"path": _take_in(task.path, run_dir)}) for task in suite.tasks)
        config = config.model_copy(update={"suite": suite.model_copy(update={"tasks": tasks})})
    else:
        data = config.data.model_copy(update={"path": copied(config.data.path, config.game.name)})
        config = config.model_copy(update={"data": data})
    write_json(run_dir.config, config.to_dict())
    return config


def reopen(run_dir: RunDir) -> RunConfig:
    """Return the configuration of an existing run directory, resolved."""
    if not run_dir.config.is_file():
        raise BadInput("no config.json: not a run directory", str(run_dir.root))
    config = load(run_dir.config, stored=True)
    run_checks.check_cluster(config)
    return resolve(config, run_dir.root)


def _take_in(path: str, run_dir: RunDir) -> str:
    """Copy an input file into the run directory; return its path relative to the directory."""
    if not path:
        return ""
    source = Path(path)
    if source.is_relative_to(run_dir.inputs):
        return str(source.relative_to(run_dir.root))
    copy = run_dir.inputs / f"{sha256(source)}{source.suffix}"
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        part = copy.with_suffix(".part")
        shutil.copyfile(source, part)
        part.replace(copy)
    return str(copy.relative_to(run_dir.root))
