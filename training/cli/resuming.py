"""A run on several processes from a shell: attempt after attempt in a child process, until one is not interrupted.

The driver is a child because it does not outlive its Ray: when that dies, Ray ends the driver as well, and where memory
is short the system ends any of them. This process passes signals on, and asks for a stop when its own input ends.
Whenever a stop is requested, the run ends as stopped: also between two attempts, and while one loads.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from training.attempts.attempt import TRIES
from training.attempts.progress import Progress
from training.cluster.processes import delete_leftovers
from training.errors import BadInput, OutsideError
from training.rundir import RunDir
from training.store import append_line, loads, read_lines
from training.supervised import held_input

log = logging.getLogger(__name__)
POLL_S = 0.2


def run_to_the_end(run_dir: RunDir, attempt: int | None) -> dict[str, Any]:
    """Run attempts until one ends otherwise than interrupted; return its result, as `run_attempt` does.

    The run fails when `TRIES` attempts in a row were interrupted and none of them has saved a checkpoint.
    """
    unsaved = 0
    with _Driver(run_dir).listening() as driver:
        while True:
            result = driver.run(attempt)
            number, attempt = int(result["attempt"]), None
            if result["result"] != "interrupted":
                return result
            if driver.reason:
                return driver.stopped()
            unsaved = 0 if run_dir.attempt(number).checkpoints() else unsaved + 1
            if unsaved == TRIES:
                why = f"{TRIES} attempts in a row died without a new checkpoint. The last: {result['why']}"
                return {**result, "result": "failed", "why": why}
            log.warning("attempt %d was interrupted: %s. It goes on from the last checkpoint", number, result["why"])


class _Driver:
    """The driver's process, one after another."""

    def __init__(self, run_dir: RunDir) -> None:
        self.run_dir, self.reason = run_dir, ""
        """Why the run is to stop; empty while it is not."""
        self._signals: list[int] = []  # those that the child has not got yet
        self._number = 0  # of the last attempt that began

    @contextmanager
    def listening(self) -> Iterator[_Driver]:
        """Pass on signals while the block runs. The child is in a session of its own, so that it gets each once."""
        old = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)
        self.reason = self.reason or f"signal {signal.Signals(number).name}"

    def run(self, attempt: int | None) -> dict[str, Any]:
        """Run one attempt; return its result. What it refuses is raised here."""
        before = set(self.run_dir.folders())
        command = _command(self.run_dir, attempt)
        with (
            tempfile.TemporaryFile() as output,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, start_new_session=True) as process,
        ):
            try:
                self._wait(process)
            finally:
                process.kill()
            code = process.wait()
            output.seek(0)
            answer = _answer(output.read())
        delete_leftovers()
        new, error = set(self.run_dir.folders()) - before, answer.get("error")
        self._number = int(answer.get("attempt", max(new, default=self._number)))
        if self.reason and "result" not in answer and (error is None or error["kind"] == "interrupted"):
            return self.stopped()
        if error:
            _raise(error)
        if "result" not in answer:
            if not new:
                raise OutsideError(f"the driver ended with code {code} before it had begun")
            answer = self._died(self._number, code)
        if answer["result"] == "interrupted":
            event = {"at": time.time(), "kind": "interrupted", "why": answer["why"]}
            append_line(self.run_dir.attempt(self._number).events, event)
        return {**answer, "exit": code if code >= 0 else 1}

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the child to end; request it to stop when the input of this process ends.

        A child that has just started may not have seen its own input open yet, and would not notice that it ends.
        """
        held = held_input()
        while process.poll() is None:
            while self._signals:
                process.send_signal(self._signals.pop(0))
            if held is None:
                time.sleep(POLL_S)
            elif select.select([held], [], [], POLL_S)[0] and not os.read(held, 4096):
                self.reason, held = self.reason or "the supervisor closed standard input", None
                assert process.stdin is not None
                process.stdin.close()
                process.send_signal(signal.SIGTERM)

    def stopped(self) -> dict[str, Any]:
        """Return that the run was stopped, and record it in the last attempt, whose driver could not."""
        newest = self.run_dir.latest_checkpoint()
        step = newest[0] if newest else 0
        if self._number:
            steps = int(self._status(self._number).get("steps", 0))
            Progress(self.run_dir.attempt(self._number), steps, step=step).finish("stopped", self.reason)
        code = 130 if "SIGINT" in self.reason else 0
        return {"result": "stopped", "why": self.reason, "step": step, "attempt": self._number, "exit": code}

    def _status(self, number: int) -> dict[str, Any]:
        """Return the last heartbeat of an attempt; empty where there is none."""
        with suppress(OSError, ValueError):
            status: dict[str, Any] = loads(self.run_dir.attempt(number).status.read_text())
            return status
        return {}

    def _died(self, number: int, code: int) -> dict[str, Any]:
        """Return the result of an attempt that could not state one itself."""
        status = self._status(number)
        how = f"was killed by signal {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        why = f"the driver (process {status.get('pid')}) {how} in phase {status.get('phase')}"
        for event, _ in read_lines(self.run_dir.attempt(number).events):
            if event["kind"] == "error":  # what ended it, where it could still say so
                why = f"{event['why']}, and {why}"
        return {"result": "interrupted", "why": why, "step": status.get("step", 0), "attempt": number}


def _command(run_dir: RunDir, attempt: int | None) -> list[str]:
    number = [] if attempt is None else ["--attempt", str(attempt)]
    return [sys.executable, "-m", "training", "resume", str(run_dir.root), "--json", "--driver", *number]


def _answer(output: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        answer = json.loads(output.decode("utf-8", "replace").strip().rpartition("\n")[2])
        return answer if isinstance(answer, dict) else {}
    return {}


def _raise(error: dict[str, str]) -> None:
    """Raise what the child was refused with."""
    if error["kind"] == "input":
        raise BadInput(error["why"], error["where"])
    if error["kind"] == "interrupted":
        raise KeyboardInterrupt
    raise OutsideError(error["why"])
