"""Runs that are killed again and again: forks the trainer, kills it, lets the next attempt go on, until it finishes.

`python -m tests.learn.killed_run moments WHOLE FOLDER N SEED` kills N times at random moments drawn from SEED, in as
many runs one after the other as that takes. `… saving WHOLE FOLDER` kills one run in each of `PHASES`, and then lets it
go on. WHOLE is a run directory of the same configuration; the new ones are made in FOLDER. One JSON object is written.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.learn.small_runs import another
from training import store
from training.attempts.progress import Progress
from training.attempts.start import reopen
from training.learn import checkpoint, trainer
from training.rundir import RunDir

LIMIT_S = 120
LONGEST_S = 1.2
"""Longest life of an attempt that is to be killed at a random moment: about as long as the whole run."""


def _any(*args, **more):
    return True


def _named(name):
    return lambda path, *args, **more: Path(path).name == name


def _to(start):
    return lambda path, target, **more: Path(target).name.startswith(start)


def _of(start):
    return lambda path, *args, **more: Path(path).name.startswith(start)


PHASES = {
    "before anything is written": (checkpoint.models, "save", _any, 1),
    "after the model": (checkpoint, "_write_tensors", _any, 1),
    "after the tensors of the state": (checkpoint, "write_json", _any, 1),
    "before the first file is flushed": (store, "_fsync", _any, 1),
    "while files are flushed": (store, "_fsync", _any, 4),
    "before the manifest": (store, "write_json", _named(store.MANIFEST), 1),
    "while the manifest is written": (Path, "replace", _to(store.MANIFEST), 1),
    "before the folder is flushed": (store, "_fsync", _of(".step_"), 1),
    "before the rename": (Path, "replace", _to("step_"), 1),
    "before the parent is flushed": (store, "_fsync", _named("checkpoints"), 1),
    "before it is cleaned up": (shutil, "rmtree", _of(".step_"), 2),
    "before it is reported": (Progress, "event", lambda progress, kind, **more: kind == "checkpoint", 1),
    "before an old one is torn": (Path, "unlink", _named(store.MANIFEST), 1),
    "before an old one is removed": (shutil, "rmtree", _of("step_"), 1),
    "while an old one is removed": (os, "unlink", lambda path, dir_fd=None: dir_fd is not None, 2),
}
"""What is called at each phase of saving: whose, its name, with which arguments, and at which such call."""
SAVES = {"before the manifest": (1, 2), "before the rename": (1, 2)}
"""Which of an attempt's checkpoints are broken off in that phase, where it is not the second alone."""


def _die_at(phase: str, save: int) -> None:
    """Kill this process in a phase of its `save`-th checkpoint."""
    saves = 0
    owner, name, matches, left = PHASES[phase]
    real, write = getattr(owner, name), checkpoint.write

    def deadly(*args, **more):
        nonlocal left
        left -= saves == save and matches(*args, **more)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **more)

    def counted(*args, **more):
        nonlocal saves
        saves += 1
        write(*args, **more)

    setattr(owner, name, deadly)
    checkpoint.write = counted


def attempt(run_dir: RunDir, phase: str = "", save: int = 0) -> int:
    """Fork one attempt; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        if phase:
            _die_at(phase, save)
        code = trainer.run(reopen(run_dir), run_dir)["exit"]
    finally:
        os._exit(code)


def wait(pid: int, seconds: float) -> int:
    """Return the exit status of a child, which is killed after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def at_moments(whole: RunDir, folder: Path, count: int, seed: int) -> dict[str, list[int]]:
    """Kill `count` times; return the exit codes of every run's attempts."""
    moments, codes, kills = random.Random(seed), {}, 0
    while kills < count:
        run_dir = another(whole, folder / str(len(codes)))
        exits = codes[str(len(codes))] = []
        while exits[-1:] in ([], [-signal.SIGKILL]):
            exits.append(wait(attempt(run_dir), moments.uniform(0.05, LONGEST_S) if kills < count else LIMIT_S))
            kills += exits[-1] == -signal.SIGKILL
    return codes


def in_phases(whole: RunDir, folder: Path) -> dict[str, list[int]]:
    """Kill in every phase of saving; return the exit codes of every run's attempts."""
    codes = {}
    for phase in PHASES:
        for save in SAVES.get(phase, (2,)):
            name = f"{phase}, {save}"
            run_dir = another(whole, folder / name)
            codes[name] = [wait(attempt(run_dir, phase, save), LIMIT_S), wait(attempt(run_dir), LIMIT_S)]
    return codes


def main(mode: str, whole: str, folder: str, *numbers: str) -> None:
    work = {"moments": at_moments, "saving": in_phases}[mode]
    sys.stdout.write(json.dumps(work(RunDir(Path(whole)), Path(folder), *map(int, numbers))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
