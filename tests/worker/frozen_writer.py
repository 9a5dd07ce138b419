"""A worker that freezes in the middle of a transaction: `python -m tests.worker.frozen_writer record|claim ID`.

It prints one line before it freezes, and after it was thawed one line for each try until one succeeds or is refused.
"""

import json
import os
import signal
import sys

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.db import Error, close_old_connections  # noqa: E402

from webapp.runs import attempts, batches  # noqa: E402
from webapp.runs.models import Attempt  # noqa: E402

LINES = [{"step": step, "at": 1.0, "reward": 0.5} for step in range(1, 61)]
IN_THE_MIDDLE = 30


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def freeze():
    say("frozen")
    os.kill(os.getpid(), signal.SIGSTOP)


class FreezingJson(batches.Jsonb):
    """Freezes when one of the middle rows is written out."""

    written = 0

    def __init__(self, obj):
        super().__init__(obj, dumps=self.dumps)

    @classmethod
    def dumps(cls, value):
        cls.written += 1
        if cls.written == IN_THE_MIDDLE:
            freeze()
        return json.dumps(value)


def record(attempt_id):
    batches.Jsonb = FreezingJson
    attempt = Attempt.objects.get(pk=attempt_id)
    return lambda: attempts.record(attempt=attempt, batch=batches.Batch(metrics=LINES, offsets={"metrics.jsonl": 9}))


def claim(run_id):
    Attempt.refresh_from_db = lambda self: freeze()
    return lambda: attempts.claim(run_id=run_id, worker="w:1:1", host="h")


def main():
    settings.RUN_LEASE_SECONDS = 2.0
    work = {"record": record, "claim": claim}[sys.argv[1]](int(sys.argv[2]))
    for _ in range(3):
        try:
            done = work()
        except Error:
            say("error")
        except attempts.Superseded:
            say("superseded")
            return
        else:
            say("nothing" if done is None else "done")
            return
        finally:
            close_old_connections()


if __name__ == "__main__":
    main()
