"""One attempt at a run of any kind: take the run's lock, prepare, run, and record how it ended.

An invalid configuration, or a run that another process is working on, raises `BadInput` and leaves no files behind.
Every other failure is recorded as a failed run and raises nothing, except that an attempt which has lost one of its
processes is recorded as interrupted: whoever supervises it begins another, up to `TRIES` without a new checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from training.attempts.lock import RunLock, hold
from training.attempts.progress import Progress, Result, StopRequested, logging_to
from training.errors import OF_HOST, BadInput, OutsideError, ParleyError, ProcessLost, boundary, name_full_disk
from training.rundir import RunDir
from training.store import sweep

log = logging.getLogger(__name__)
T = TypeVar("T")
TRIES = 3
"""Attempts in a row that may be interrupted without a new checkpoint, until the run fails."""
Checkpoint = tuple[int, Path]
"""A training step and the folder of its checkpoint."""


def run_attempt(
    run_dir: RunDir,
    attempt: int | None,
    prepare: Callable[[Progress, Checkpoint | None], T],
    go: Callable[[T, Progress], tuple[Result, str]],
    *,
    steps: int = 0,
    supervised: bool = False,
) -> dict[str, Any]:
    """Run one attempt; return `{"result", "why", "step", "attempt", "exit"}`.

    `attempt` is its number, by default the next free one. A `supervised` attempt takes the lock from an earlier
    supervised one. `prepare` receives the newest checkpoint (step and folder), if there is one, and returns what `go`
    works with. Signals are handled only while `go` runs, because before that there is nothing to save. `exit` is 0 for
    succeeded or stopped, 1 for failed or interrupted, 130 for stopped by SIGINT.
    """
    attempts = run_dir.root / "attempts"
    missing = [folder for folder in (attempts, *attempts.parents) if not folder.exists()]
    try:
        with hold(run_dir, attempt, supervised=supervised) as lock:
            return _locked(run_dir, lock, prepare, go, steps)
    except BadInput:
        for folder in missing:
            with suppress(OSError):  # the folder was not created, or has files of somebody else
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
    for earlier in run_dir.folders():  # a process that was killed while it saved has left its part there
        sweep(run_dir.attempt(earlier).root / "checkpoints", "step_*")
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
        with logging_to(progress):
            result, why = _failed(progress, error)
    else:
        with progress.listening(), logging_to(progress):
            progress.phase("starting")
            name = checkpoint[1].name if checkpoint else None
            progress.event("started", attempt=number, step=progress.step, checkpoint=name)
            try:
                with boundary():
                    result, why = go(prepared, progress)
            except StopRequested as request:
                result, why = "stopped", str(request)
            except ParleyError as error:
                result, why = _failed(progress, error)
    try:
        progress.finish(result, why)
    except OSError as error:  # a full disk, for instance
        log.warning("the end of the attempt could not be recorded: %s", error)
    code = 1 if result in ("failed", "interrupted") else 130 if "SIGINT" in progress.reason else 0
    return {"result": result, "why": why, "step": progress.step, "attempt": number, "exit": code}


def _failed(progress: Progress, error: ParleyError) -> tuple[Result, str]:
    if isinstance(error, ProcessLost):
        log.error("the attempt was interrupted: %s", error)
        return "interrupted", str(error)
    why = name_full_disk(str(error))
    if OF_HOST in why:
        why = f"{why}. Free some space and resume the run: its last checkpoint is kept"
    explained = isinstance(error, OutsideError) and error.__cause__ is None  # any other error may be one of the program
    log.error("the run failed: %s", why, exc_info=None if explained else error)
    with suppress(OSError):
        progress.event("error", step=progress.step, why=why)
    return "failed", why
