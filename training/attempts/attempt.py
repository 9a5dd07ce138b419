"""One attempt at a run of any kind: take the run's lock, prepare, run, and record how it ended.

A wrong configuration, or a run that another process works on, raises `BadInput` and leaves nothing behind; every other
failure ends as a failed run, not as an exception.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from training.attempts.lock import RunLock, hold
from training.attempts.progress import Progress, Result, StopAsked, logging_to
from training.errors import BadInput, ParleyError, boundary
from training.rundir import RunDir

log = logging.getLogger(__name__)
T = TypeVar("T")
Checkpoint = tuple[int, Path]
"""A training step and the folder of the checkpoint after it."""


def run_attempt(
    run_dir: RunDir,
    attempt: int | None,
    prepare: Callable[[Progress, Checkpoint | None], T],
    go: Callable[[T, Progress], tuple[Result, str]],
    *,
    steps: int = 0,
    supervised: bool = False,
) -> dict[str, Any]:
    """Do one attempt; return `{"result", "why", "step", "attempt", "exit"}`.

    `attempt` is its number and its folder's, by default the next free one. A `supervised` attempt takes the lock from
    an earlier supervised one. `prepare` loads what `go` works with, from the
    newest checkpoint (step and folder) if there is one; signals act as usual meanwhile, for there is nothing to save
    yet. `exit`: 0 succeeded or stopped, 1 failed, 130 stopped by SIGINT.
    """
    attempts = run_dir.root / "attempts"
    missing = [folder for folder in (attempts, *attempts.parents) if not folder.exists()]
    try:
        with hold(run_dir, attempt, supervised=supervised) as lock:
            return _locked(run_dir, lock, prepare, go, steps)
    except BadInput:
        for folder in missing:
            with suppress(OSError):  # not made, or not empty: somebody else's files are in it
                folder.rmdir()
        raise


def _locked(
    run_dir: RunDir,
    lock: RunLock,
    prepare: Callable[[Progress, Checkpoint | None], T],
    go: Callable[[T, Progress], tuple[Result, str]],
    steps: int,
) -> dict[str, Any]:
    number = lock.holder.attempt
    files, checkpoint = run_dir.attempt(number), run_dir.latest_checkpoint()
    is_new = not files.root.exists()
    progress = Progress(files, steps, step=checkpoint[0] if checkpoint else 0)
    lock.lost = progress.stop
    progress.phase("loading")
    progress.watch_input()
    result: Result
    try:
        with boundary():
            prepared = prepare(progress, checkpoint)
    except BadInput:
        files.status.unlink()
        if is_new:
            files.root.rmdir()
        raise
    except ParleyError as error:
        result, why = _failed(progress, error)
    else:
        with progress.listening(), logging_to(progress):
            progress.phase("starting")
            name = checkpoint[1].name if checkpoint else None
            progress.event("started", attempt=number, step=progress.step, checkpoint=name)
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
