"""`python -m training index`: builds the index of a corpus, or names the one that exists."""

from __future__ import annotations

import os
import select
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from training.errors import BadInput
from training.retrieval import index
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.corpus import InvalidCorpus
from training.retrieval.dense import MODEL, DenseSettings
from training.store import write_json
from training.supervised import held_input

STATUS_S = 0.5
"""Shortest time between two writes of the status in the same phase."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Build the index; return its name, path, number of passages, size, the seconds that this call took, and whether
    it was built (and not there already).
    """
    began = time.perf_counter()
    report = _Reporter(arguments.status)
    if arguments.model and arguments.kind != "dense":
        raise BadInput("only --kind dense has a model", "--model")
    try:
        settings = DenseSettings.of(arguments.model or MODEL) if arguments.kind == "dense" else Bm25Settings()
        folder = index.build(arguments.corpus, settings, report)
    except BadInput as error:
        report.write({"phase": "refused", **of_error(error)})
        raise
    result = {
        "name": folder.name,
        "path": str(folder),
        "kind": arguments.kind,
        "corpus": arguments.corpus.name,
        "passages": index.read_info(folder).passages,
        "bytes": sum(file.stat().st_size for file in folder.rglob("*")),
        "seconds": time.perf_counter() - began,
        "built": report.built,
    }
    report.write({"phase": "finished", **result})
    return result


def of_error(error: BadInput) -> dict[str, Any]:
    """Return the error for the status file; `invalid` says that the corpus is at fault, not the machine."""
    return {"where": error.where, "why": error.why, "invalid": isinstance(error, InvalidCorpus)}


class _Reporter:
    """Prints the progress: on a terminal in place, elsewhere about ten lines per phase. Also writes it to a file.

    Raises `KeyboardInterrupt` once a supervisor that held standard input open is gone.
    """

    def __init__(self, status: Path | None) -> None:
        self._printed = ("", 0)
        self._status, self._phase, self._written = status, "", 0.0
        self._input = held_input()

    @property
    def built(self) -> bool:
        """Whether there was more to do than to read the corpus's checksum."""
        return self._phase != "checksum"

    def __call__(self, done: int, total: int, phase: str) -> None:
        if self._input is not None and select.select([self._input], [], [], 0)[0] and not os.read(self._input, 4096):
            raise KeyboardInterrupt
        if self._status is not None and (phase != self._phase or time.monotonic() - self._written >= STATUS_S):
            self.write({"phase": phase, "done": done, "total": total})
        self._phase = phase
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


def show(result: dict[str, Any]) -> str:
    """Return the name and the path, and what they stand for."""
    size = f"{result['passages']:,} passages, {result['bytes']:,} bytes, {result['seconds']:.1f} s"
    return f"{result['name']}: {size}\n{result['path']}"
