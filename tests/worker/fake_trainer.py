"""A stand-in for the training process: it keeps the contract of the run directory and needs no model.

What it does is written in the configuration's name as JSON: steps, seconds a step, and faults at a step. Any other name
is a run without faults, of as many steps as its configuration has.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from training.attempts.progress import Progress
from training.errors import ProcessLost
from training.rundir import RunDir
from training.store import atomic_directory, write_json

SAVE_EVERY = 5


def save(attempt, step):
    with atomic_directory(attempt.checkpoint(step)) as folder:
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"weights %d" % step)


def misbehave(wish, step, number):
    if wish.get("crash_at") == step and number <= wish.get("crashes", 1):
        os._exit(9)
    if wish.get("lose_at") == step and number <= wish.get("losses", 1):
        raise ProcessLost("learner rank 1 died")
    if wish.get("hang_at") == step and number == 1:
        time.sleep(3600)
    if wish.get("freeze_at") == step and number == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    if wish.get("wrong_input"):
        sys.stderr.write("learn.lr: must be positive\n")
        sys.exit(2)


def episode(progress, step, number):
    record = {"episode": {"scenario": f"s{number}"}, "returns": {"0": 1.0}, "credit": {}}
    progress.episode(step, number, record, {"metrics": {"agreement": float(number % 2)}, "turns": 4})


def wish_of(config):
    if config["name"].startswith("{"):
        return json.loads(config["name"])
    return {"steps": config["learn"]["steps"]}


def main():
    folder, number = RunDir(Path(sys.argv[2])), int(sys.argv[4])
    wish = wish_of(json.loads(folder.config.read_text()))
    attempt = folder.attempt(number)
    latest = folder.latest_checkpoint()
    start = latest[0] if latest else 0
    progress = Progress(attempt, wish["steps"], step=start)
    sys.stdout.write(f"seen secrets: {json.dumps(sorted(os.environ))}\n")
    sys.stdout.write(f"judge key: {os.environ.get('JUDGE_API_KEY', 'none')}\n")
    with progress.listening():
        progress.phase("starting")
        time.sleep(wish.get("start_seconds", 0))
        progress.event("started", step=start)
        for step in range(start + 1, wish["steps"] + 1):
            try:
                misbehave(wish, step, number)
            except ProcessLost as error:
                progress.finish("interrupted", str(error))
                sys.exit(1)
            progress.step = step
            progress.phase("learning")
            time.sleep(wish.get("seconds", 0.01))
            for game in range(2):
                episode(progress, step, game)
            progress.metrics(step, {"reward": step / 10, "loss": 1 / step})
            if progress.stopping or step % SAVE_EVERY == 0 or step == wish["steps"]:
                progress.phase("saving")
                time.sleep(wish.get("save_seconds", 0))
                save(attempt, step)
            if progress.stopping:
                progress.finish("stopped", progress.reason)
                return
        if "evaluation" in wish:
            progress.phase("evaluating", done=0, of=2)
            misbehave(wish, "evaluation", number)
            write_json(attempt.root / "evaluation.json", wish["evaluation"])
        progress.finish("succeeded")


if __name__ == "__main__":
    main()
