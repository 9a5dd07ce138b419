"""Weights in chunks of bounded size, so that a model passes between processes without a second copy of it.

A tensor that is larger than a chunk is cut and put together again on the other side. Importing this imports torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from training.engines.base import Weights
from training.engines.local.loading import folder_weights
from training.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor

CHUNK_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one tensor from `start` on; the tensor has `shape` and the torch type named `dtype`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    data: np.ndarray[tuple[int], np.dtype[np.uint8]]


Chunk = list[Piece]


def cut(weights: Weights, size: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yield weights in chunks of at most `size` bytes; those of a CPU are not copied."""
    source = folder_weights(weights) if isinstance(weights, Path) else weights
    chunk: Chunk = []
    room = size
    for name, tensor in source:
        data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        dtype, shape, start = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), 0
        while start < len(data) or not len(data):
            part = data[start : start + room]
            chunk.append(Piece(name, dtype, shape, start, part))
            start += len(part)
            room -= len(part)
            if room <= 0:
                yield chunk
                chunk, room = [], size
            if not len(data):
                break
    if chunk:
        yield chunk


def joined(chunks: Iterable[Chunk]) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, tensor) of chunks in order; a tensor that was not cut shares its chunk's memory."""
    partial: tuple[str, np.ndarray[tuple[int], np.dtype[np.uint8]]] | None = None
    for chunk in chunks:
        for piece in chunk:
            dtype = getattr(torch, piece.dtype)
            whole = int(np.prod(piece.shape, dtype=np.int64)) * dtype.itemsize
            data = piece.data
            if len(data) < whole:
                if piece.start == 0:
                    partial = piece.name, np.empty(whole, np.uint8)
                if partial is None or partial[0] != piece.name:
                    raise EngineError(f"the first bytes of {piece.name} did not come")
                partial[1][piece.start : piece.start + len(data)] = data
                if piece.start + len(data) < whole:
                    continue
                data, partial = partial[1], None
            yield piece.name, _tensor(data, dtype).reshape(piece.shape)
    if partial is not None:
        raise EngineError(f"the last bytes of {partial[0]} did not come")


def _tensor(data: np.ndarray[tuple[int], np.dtype[np.uint8]], dtype: torch.dtype) -> Tensor:
    if not len(data):
        return torch.empty(0, dtype=dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # it is only read
        return torch.from_numpy(data).view(dtype)
