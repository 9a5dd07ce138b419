"""`python -m training index`: builds the index of a corpus, or names the one that exists."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import Any

from training.errors import BadInput
from training.retrieval import index
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.dense import MODEL, DenseSettings


def main(arguments: Namespace) -> dict[str, Any]:
    """Build the index; return its name, path, number of passages, size, and the seconds that this call took."""
    began = time.perf_counter()
    if arguments.model and arguments.kind != "dense":
        raise BadInput("only --kind dense has a model", "--model")
    settings = DenseSettings.of(arguments.model or MODEL) if arguments.kind == "dense" else Bm25Settings()
    folder = index.build(arguments.corpus, settings, _Printer())
    return {
        "name": folder.name,
        "path": str(folder),
        "kind": arguments.kind,
        "corpus": arguments.corpus.name,
        "passages": index.read_info(folder).passages,
        "bytes": sum(file.stat().st_size for file in folder.rglob("*")),
        "seconds": time.perf_counter() - began,
    }


class _Printer:
    """Prints the progress: on a terminal in place, elsewhere about ten lines per phase."""

    def __init__(self) -> None:
        self._printed = ("", 0)

    def __call__(self, done: int, total: int, phase: str) -> None:
        tenth = 10 * done // total if total else 10
        if sys.stderr.isatty():
            print(f"\r{phase}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
        elif self._printed != (phase, tenth):
            print(f"{phase}: {done} of {total}", file=sys.stderr, flush=True)
            self._printed = (phase, tenth)


def show(result: dict[str, Any]) -> str:
    """Return the name and the path, and what they stand for."""
    size = f"{result['passages']:,} passages, {result['bytes']:,} bytes, {result['seconds']:.1f} s"
    return f"{result['name']}: {size}\n{result['path']}"
