"""Sentence embeddings by `sentence-transformers`, from a folder, without a network. Importing this loads torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from training.retrieval.dense import Vectors


class SentenceEncoder:
    """A model of sentence-transformers. Texts longer than its window are cut off (256 tokens for all-MiniLM-L6-v2)."""

    def __init__(self, folder: Path, device: str | None) -> None:
        self._model = SentenceTransformer(str(folder), device=device, local_files_only=True, trust_remote_code=False)
        self._lock = threading.Lock()  # its tokenizer serves one thread at a time

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a vector per text, of shape (texts, dimensions)."""
        # the tokenizer refuses unpaired surrogates, which a query of a model or a person may contain
        characters = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with self._lock:
            vectors = self._model.encode(characters, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)
