"""One attempt at a run of any kind: prepare it, carry it out, and tell how it ended.

A wrong configuration raises `BadInput` before anything is written; every other failure ends as a failed run, not as an
exception.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from training.attempts.progress import Progress, Result, StopAsked, logging_to
from training.errors import BadInput, ParleyError, boundary
from training.rundir import RunDir

log = logging.getLogger(__name__)
T = TypeVar("T")


def run_attempt(
    run_dir: RunDir,
    attempt: int | None,
    prepare: Callable[[Progress], T],
    go: Callable[[T, Progress], tuple[Result, str]],
    *,
    steps: int = 0,
    found: tuple[int, Path] | None = None,
) -> dict[str, Any]:
    """Do one attempt; return `{"result", "why", "step", "attempt", "exit"}`.

    `attempt` is the number of its folder, by default the next one; `found` the checkpoint it starts from. `prepare`
    loads what `go` works with: signals act as usual meanwhile, for there is nothing to save yet. `exit`: 0 succeeded
    or stopped, 1 failed, 130 stopped by SIGINT.
    """
    number = attempt if attempt is not None else max(run_dir.attempts(), default=0) + 1
    files = run_dir.attempt(number)
    made = [folder for folder in (files.root, *files.root.parents) if not folder.exists()]
    progress = Progress(files, steps, step=found[0] if found else 0)
    progress.phase("loading")
    progress.watch_input()
    result: Result
    try:
        with boundary():
            prepared = prepare(progress)
    except BadInput:
        files.status.unlink()
        for folder in made:
            folder.rmdir()
        raise
    except ParleyError as error:
        result, why = _failed(progress, error)
    else:
        with progress.listening(), logging_to(progress):
            progress.phase("starting")
            checkpoint = found[1].name if found else None
            progress.event("started", attempt=number, step=progress.step, checkpoint=checkpoint)
            try:
                with boundary():
                    result, why = go(prepared, progress)
            except StopAsked as asked:
                result, why = "stopped", str(asked)
            except ParleyError as error:
                result, why = _failed(progress, error)
    progress.finish(result, why)
    code = 1 if result == "failed" else 130 if "SIGINT" in progress.reason else 0
    return {"result": result, "why": why, "step": progress.step, "attempt": number, "exit": code}


def _failed(progress: Progress, error: ParleyError) -> tuple[Result, str]:
    with logging_to(progress):
        log.error("the run failed", exc_info=error)
    progress.event("error", step=progress.step, why=str(error))
    return "failed", str(error)
