"""The progress of a command, for people and for whoever supervises the process."""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path
from typing import Any

from training.store import write_json
from training.supervised import held_input

STATUS_S = 0.5
"""Shortest time between two writes of the status in the same phase."""


class Reporter:
    """Prints the progress: on a terminal in place, elsewhere about ten lines per phase. Also writes it to a file.

    `phase` is the last one. Raises `KeyboardInterrupt` once a supervisor that held standard input open is gone.
    """

    def __init__(self, status: Path | None) -> None:
        self._printed = ("", 0)
        self._status, self.phase, self._written = status, "", 0.0
        self._input = held_input()

    def __call__(self, done: int, total: int, phase: str) -> None:
        if self._input is not None and select.select([self._input], [], [], 0)[0] and not os.read(self._input, 4096):
            raise KeyboardInterrupt
        if self._status is not None and (phase != self.phase or time.monotonic() - self._written >= STATUS_S):
            self.write({"phase": phase, "done": done, "total": total})
        self.phase = phase
        tenth = 10 * done // total if total else 10
        if sys.stderr.isatty():
            print(f"\r{phase}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
        elif self._printed != (phase, tenth):
            print(f"{phase}: {done} of {total}", file=sys.stderr, flush=True)
            self._printed = (phase, tenth)

    def write(self, status: dict[str, Any]) -> None:
        """Write the status, if there is a file for it."""
        if self._status is not None:
            self._written = time.monotonic()
            write_json(self._status, status)
