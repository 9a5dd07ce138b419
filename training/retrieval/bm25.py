"""BM25 with `bm25s`, which stores the score of every word in every passage and adds them up for a query.

The variant is Lucene's (Kamphuis et al. 2020, "Which BM25 do you mean?"): a passage d of a corpus of N scores

    Σ_q ln(1 + (N − n_q + 0.5) / (n_q + 0.5)) · f / (f + k1 · (1 − b + b · |d| / L))

over the words q of the query, a repeated word counting again: n_q passages contain q, d has it f times and is |d| words
long, L is the mean length. Scores are float32. Every passage that shares a word with the query scores above 0; others
are not returned.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from training.reading import Record
from training.retrieval.base import Passage, Progress, bm25s
from training.retrieval.corpus import InvalidCorpus
from training.retrieval.passages import Passages, best, check_k
from training.retrieval.words import words

PASSES = 3
"""How often bm25s goes through the corpus: lengths, passages of each word, scores."""
STEP = 2000
"""Passages between two reports of progress."""


class Bm25Settings(Record):
    """Settings of a BM25 index; the defaults are those of bm25s."""

    kind: Literal["bm25"] = "bm25"
    k1: Annotated[float, Field(ge=0, le=10, description="Saturation of repeated words")] = 1.5
    b: Annotated[float, Field(ge=0, le=1, description="Normalisation by length: 0 = none, 1 = full")] = 0.75
    stopwords: Annotated[
        Literal["english", "none"], Field(description="Words that are left out: Lucene's 33 English ones, or none")
    ] = "english"

    def left_out(self) -> frozenset[str]:
        """Return the words that are not indexed."""
        return frozenset(bm25s().stopwords.STOPWORDS_EN if self.stopwords == "english" else ())


def build(folder: Path, passages: Passages, settings: Bm25Settings, on_progress: Progress) -> None:
    """Write the index of the stored passages into `folder`.

    It needs memory for the vocabulary, and about 20 bytes per different word of each passage.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        token_ids = TokenIds(file, on_progress)
        vocabulary = _tokenize(passages, settings, token_ids, on_progress)
        if not vocabulary:
            raise InvalidCorpus("no passage contains a word that can be searched", "text")
        bm25 = bm25s().BM25(method="lucene", k1=settings.k1, b=settings.b, csc_backend="scipy")
        bm25.index(SimpleNamespace(ids=token_ids, vocab=vocabulary), create_empty_token=False, show_progress=False)
    bm25.save(folder, show_progress=False)


def _tokenize(passages: Passages, settings: Bm25Settings, token_ids: TokenIds, on_progress: Progress) -> dict[str, int]:
    """Append the ids of every passage's words; return the id of each word, in the order of first appearance."""
    vocabulary: dict[str, int] = {}
    left_out, total = settings.left_out(), len(passages)
    for done, document in enumerate(passages, 1):
        kept = (word for word in words(document.content) if word not in left_out)
        token_ids.append([vocabulary.setdefault(word, len(vocabulary)) for word in kept])
        if done % STEP == 0 or done == total:
            on_progress(done, total, "words")
    return vocabulary


class TokenIds:
    """The ids of the words of every passage, in a file; an iteration yields a list per passage.

    bm25s would take a list of lists, but that of a million passages fills a gigabyte.
    """

    def __init__(self, file: Any, on_progress: Progress) -> None:
        self._file, self._on_progress = file, on_progress
        self._lengths, self._done = array("i"), 0

    def append(self, ids: Sequence[int]) -> None:
        """Add a passage."""
        self._file.write(array("i", ids).tobytes())
        self._lengths.append(len(ids))

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[list[int]]:
        self._file.seek(0)
        total = PASSES * len(self)
        for length in self._lengths:
            ids = array("i")
            ids.frombytes(self._file.read(length * ids.itemsize))
            yield ids.tolist()
            self._done += 1
            if self._done % STEP == 0 or self._done == total:
                self._on_progress(self._done, total, "scores")


class Bm25Retriever:
    """Searches an index that `build` wrote. Its arrays are memory-mapped, its vocabulary is in memory."""

    def __init__(self, folder: Path, settings: Bm25Settings) -> None:
        self._folder, self._settings, self._passages = folder, settings, Passages(folder)

    @cached_property
    def _bm25(self) -> Any:
        return bm25s().BM25.load(self._folder, mmap=True, show_progress=False)

    @cached_property
    def _left_out(self) -> frozenset[str]:
        return self._settings.left_out()

    def search(self, query: str, k: int) -> list[Passage]:
        """Return the best passages that share a word with the query; see `Retriever`."""
        check_k(k)
        ids = self._bm25.get_tokens_ids([word for word in words(query) if word not in self._left_out])
        if not ids:
            return []
        scores: NDArray[np.float32] = self._bm25.get_scores_from_ids(ids)
        matching = np.flatnonzero(scores)
        places = matching[best(scores[matching], k)]
        return self._passages.ranked(places.tolist(), scores[places].tolist())
