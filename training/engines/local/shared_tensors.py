"""Tensors in memory that several processes of this machine read: how the workers of one engine get its weights.

The memory is anonymous (a memfd) and is not limited by the size of /dev/shm: it is freed once no process has it open
or mapped, also if all of them were killed. Importing this imports torch.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from training.engines.chunks import CHUNK_BYTES

if TYPE_CHECKING:
    from torch import Tensor

ALIGNMENT = 64
"""Tensors begin at multiples of so many bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor of `shape` and the torch type named `dtype` begins, in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int


@dataclass(frozen=True, slots=True)
class SharedTensors:
    """Tensors that another process can read while `shared` lasts there; what was read stays valid after that."""

    path: str
    places: tuple[Place, ...]

    def read(self) -> list[tuple[str, Tensor]]:
        """Return (name, tensor) without a copy; what is written to a tensor is seen by this process alone."""
        with Path(self.path).open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return [(place.name, _tensor(memory, place)) for place in self.places]


@contextmanager
def shared(tensors: Sequence[tuple[str, Tensor]]) -> Iterator[SharedTensors]:
    """Copy (name, tensor) into memory that other processes of this user can open until the context ends."""
    places, size = [], 0
    for name, tensor in tensors:
        places.append(Place(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), size))
        size += -(-tensor.nbytes // ALIGNMENT) * ALIGNMENT
    descriptor = os.memfd_create("weights")
    try:
        os.truncate(descriptor, max(size, 1))
        _write(descriptor, places, tensors)
        yield SharedTensors(f"/proc/{os.getpid()}/fd/{descriptor}", tuple(places))
    finally:
        os.close(descriptor)


def grouped(tensors: Iterable[tuple[str, Tensor]], size: int = CHUNK_BYTES) -> Iterator[list[tuple[str, Tensor]]]:
    """Yield (name, tensor) in groups of at most `size` bytes, or of one tensor that is larger."""
    group: list[tuple[str, Tensor]] = []
    room = size
    for name, tensor in tensors:
        if group and tensor.nbytes > room:
            yield group
            group, room = [], size
        group.append((name, tensor))
        room -= tensor.nbytes
    if group:
        yield group


def _write(descriptor: int, places: Iterable[Place], tensors: Iterable[tuple[str, Tensor]]) -> None:
    memory = mmap.mmap(descriptor, 0)
    for place, (_, tensor) in zip(places, tensors, strict=True):
        _tensor(memory, place).copy_(tensor.detach())


def _tensor(memory: mmap.mmap, place: Place) -> Tensor:
    """Return the tensor at a place, which keeps the memory mapped."""
    dtype, count = getattr(torch, place.dtype), torch.Size(place.shape).numel()
    if not count:
        return torch.empty(place.shape, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=place.start).reshape(place.shape)
