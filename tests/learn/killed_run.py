"""A run that is killed again and again: forks the trainer, kills it, lets the next attempt go on, until it finishes.

`python -m tests.learn.killed_run FOLDER MODE N SEED` writes one JSON object. MODE `moments`: N kills at random moments
drawn from SEED. MODE `saving`: the attempt kills itself at the N-th file operation of saving; then one more attempt.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from training import store
from training.learn import trainer
from training.learn.start import reopen
from training.store import RunDir

LIMIT_S = 120


def attempt(run_dir: RunDir, *, die_at: int = 0) -> int:
    """Fork one attempt; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        if die_at:
            _die_at(die_at)
        code = trainer.run(reopen(run_dir), run_dir)["exit"]
    finally:
        os._exit(code)


def _die_at(count: int) -> None:
    """Kill this process just before the count-th fsync, manifest, rename or removal of a folder."""
    left = count

    def deadly(function, counts=lambda *args: True):
        def wrapped(*args, **more):
            nonlocal left
            left -= counts(*args)
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **more)

        return wrapped

    store._fsync = deadly(store._fsync)
    store.write_json = deadly(store.write_json, lambda path, data: path.name == store.MANIFEST)
    Path.replace = deadly(Path.replace, lambda path, target: "checkpoints" in str(target))
    shutil.rmtree = deadly(shutil.rmtree)


def wait(pid: int, seconds: float) -> int | None:
    """Return the exit status of a child, or None if it still runs after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return None


def main(folder: str, mode: str, count: int, seed: int) -> dict[str, object]:
    run_dir, moments, codes = RunDir(Path(folder)), random.Random(seed), []
    for _ in range(count if mode == "moments" else 1):
        pid = attempt(run_dir, die_at=count if mode == "saving" else 0)
        code = wait(pid, moments.uniform(0.05, 2.5) if mode == "moments" else LIMIT_S)
        if code is None:
            os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        codes.append(code)
        if code == 0:
            break
    if codes[-1] != 0:
        codes.append(wait(attempt(run_dir), LIMIT_S))
    return {"codes": codes, "attempts": len(run_dir.attempts())}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))) + "\n")
