"""What a search returns, and who searches. Games and players need nothing else of this package."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Protocol

from training.reading import Record

Progress = Callable[[int, int, str], None]
"""Called with (done, total, phase) while an index is built. An exception that it raises ends the work at once; nothing
of the unfinished index is kept."""
_importing = threading.Lock()


def no_progress(done: int, total: int, phase: str) -> None:
    """Do nothing."""


def bm25s() -> ModuleType:
    """Return the library bm25s, imported without numba, which it would use for other ways to search.

    vLLM's CPU engine reads the attributes of all modules as it begins, and fails at one of llvmlite's, numba's base.
    """
    with _importing:  # a worker searches in several threads
        if "bm25s" not in sys.modules:
            before = sys.modules.pop("numba", None)
            sys.modules["numba"] = None  # type: ignore[assignment]  # so that an import of it fails
            try:
                import_module("bm25s")
            finally:
                del sys.modules["numba"]
                if before is not None:
                    sys.modules["numba"] = before
            logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every step and sets itself to DEBUG
    return sys.modules["bm25s"]


class Passage(Record):
    """A passage that was found; a higher score is a better match. Scores of different indexes do not compare."""

    id: str
    title: str
    text: str
    score: float

    @property
    def with_title(self) -> str:
        """The text after its title, as seats of a game read it."""
        return f"{self.title}: {self.text}" if self.title else self.text


class Retriever(Protocol):
    """Searches one index."""

    def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages, the best first; equal scores are in the order of the corpus.

        The same index and query give the same list. A query without content gives none. Raises `BadInput` for a `k`
        below 1, and where the index cannot be loaded.
        """
        ...
