"""`export-metrics RUN_DIR --out DIR`: a run's metrics as a TensorBoard event file, and a script that logs it to W&B.

Raises `BadInput` for a folder that is not a run directory or has no metrics, and for a file that exists already.
"""

from __future__ import annotations

import os
import shutil
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training.errors import BadInput
from training.event_files import TO_WANDB, Row, file_name, pieces
from training.rundir import RunDir
from training.store import read_lines


def main(arguments: Namespace) -> dict[str, Any]:
    """Write the file and the script; return the file's path and its numbers of steps and metrics."""
    rows = list(steps(RunDir(arguments.run_dir)))
    if not rows:
        raise BadInput("the folder contains no attempt with metrics", str(arguments.run_dir))
    path: Path = arguments.out / file_name(rows[0][1])
    if path.exists():
        raise BadInput("the file exists already; choose another folder, or delete it", str(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.writelines(pieces(rows))
        shutil.copyfile(TO_WANDB, arguments.out / TO_WANDB.name)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BadInput(f"cannot be written: {error.strerror}", str(path)) from error
    return {"file": str(path), "steps": len(rows), "metrics": len({name for _, _, values in rows for name in values})}


def steps(run_dir: RunDir) -> Iterator[Row]:
    """Yield every training step of a run once, in order; a later attempt replaces earlier ones after its first step."""
    rows: dict[int, Row] = {}
    for number in run_dir.attempts():
        attempt = run_dir.attempt(number)
        begun = [event for event, _ in read_lines(attempt.events) if event["kind"] == "started"]
        if not begun:
            continue
        rows = {step: row for step, row in rows.items() if step <= begun[0]["step"]}
        for line, _ in read_lines(attempt.metrics):
            values = {name: value for name, value in line.items() if name not in {"step", "at"}}
            rows[line["step"]] = (line["step"], line["at"], values)
    yield from (row for _, row in sorted(rows.items()))


def show(result: dict[str, Any]) -> str:
    """Return a summary of the file, and the commands that show it in TensorBoard and log it to W&B."""
    folder = Path(result["file"]).parent
    return "\n".join(
        (
            f"{result['file']}: {result['steps']} steps of {result['metrics']} metrics",
            f"TensorBoard: tensorboard --logdir {folder}",
            f"Weights & Biases: pip install wandb, then python {folder / TO_WANDB.name}",
        )
    )
