"""What a search returns, and who searches. Games and players need nothing else of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from training.reading import Record

Progress = Callable[[int, int, str], None]
"""Called with (done, total, phase) while an index is built. An exception that it raises ends the work at once; nothing
of the unfinished index is kept."""


def no_progress(done: int, total: int, phase: str) -> None:
    """Do nothing."""


class Passage(Record):
    """A passage that was found; a higher score is a better match. Scores of different indexes do not compare."""

    id: str
    title: str
    text: str
    score: float


class Retriever(Protocol):
    """Searches one index."""

    def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages, the best first; equal scores are in the order of the corpus.

        The same index and query give the same list. A query without content gives none. Raises `BadInput` for a `k`
        below 1, and where the index cannot be loaded.
        """
        ...
