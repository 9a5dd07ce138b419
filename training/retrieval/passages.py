"""The passages of an index on disk: lines of JSON, and the offset of each, so that any one is read alone."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.errors import BadInput
from training.retrieval.base import Passage
from training.retrieval.corpus import Document
from training.store import dumps

LINES = "passages.jsonl"
OFFSETS = "offsets.npy"


def write(folder: Path, documents: Iterable[Document]) -> int:
    """Write the passages to the existing `folder`; return their number."""
    offsets = array("q", [0])
    with (folder / LINES).open("wb") as file:
        for document in documents:
            offsets.append(offsets[-1] + file.write(dumps(document).encode() + b"\n"))
    np.save(folder / OFFSETS, np.frombuffer(offsets, dtype=np.int64))
    return len(offsets) - 1


class Passages:
    """Reads what `write` wrote. The files are memory-mapped at the first access; threads may share an object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = np.load(self.folder / OFFSETS, mmap_mode="r")
        return offsets

    @cached_property
    def _lines(self) -> NDArray[np.uint8]:
        return np.memmap(self.folder / LINES, dtype=np.uint8, mode="r")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, position: int) -> Document:
        begin, end = self._offsets[position : position + 2]
        return Document(*json.loads(self._lines[begin:end].tobytes()))

    def __iter__(self) -> Iterator[Document]:
        with (self.folder / LINES).open("rb") as file:
            for line in file:
                yield Document(*json.loads(line))

    def ranked(self, positions: Sequence[int], scores: Sequence[float]) -> list[Passage]:
        """Return the passages at these positions of the corpus, with their scores."""
        scored = zip(map(self.__getitem__, positions), scores, strict=True)
        return [Passage(**document._asdict(), score=score) for document, score in scored]


def best(scores: NDArray[np.floating[Any]], k: int) -> list[int]:
    """Return the positions of the `k` highest scores, best first; equal scores are in the order of positions."""
    if len(scores) > k:
        limit = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= limit)
    else:
        places = np.arange(len(scores))
    order = np.argsort(-scores[places], kind="stable")[:k]
    return [int(place) for place in places[order]]


def check_k(k: int) -> None:
    """Raise `BadInput` for a number of passages below 1."""
    if k < 1:
        raise BadInput(f"expected at least 1 passage, not {k}", "k")
