"""Safetensors files of which no more than a piece is in memory: written as tensors arrive, read a tensor at a time.

To write one, names, types and shapes must be known before. The files are, byte for byte, those that safetensors and
huggingface_hub write of whole tensors. Raises `OutsideError` where a tensor does not arrive in full.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors import safe_open

from training.errors import OutsideError

if TYPE_CHECKING:
    from torch import Tensor

    from training.engines.chunks import Chunk

TYPES = {
    "int64": "I64",
    "float64": "F64",
    "float32": "F32",
    "int32": "I32",
    "bfloat16": "BF16",
    "float16": "F16",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
"""What safetensors calls torch's types, in the order in which it writes tensors of different types."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The torch type and the shape of a tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> Outline:
        """Return the outline of a tensor; of one that is sharded that of the whole."""
        return cls(tensor.dtype, tuple(tensor.shape))

    @property
    def nbytes(self) -> int:
        """The size of the tensor in bytes."""
        return self.dtype.itemsize * torch.Size(self.shape).numel()

    @property
    def name_of_type(self) -> str:
        """The type as torch names it."""
        return str(self.dtype).removeprefix("torch.")


def outlines_of(chunks: Iterable[Chunk]) -> dict[str, Outline]:
    """Return the outlines of the tensors in chunks."""
    pieces = (piece for chunk in chunks for piece in chunk)
    return {piece.name: Outline(getattr(torch, piece.dtype), piece.shape) for piece in pieces}


class TensorWriter:
    """Files that are being written, in a `with` block at whose end every byte must have arrived.

    `beat` is called after every chunk.
    """

    def __init__(self, beat: Callable[[], None] | None = None) -> None:
        self._beat = beat
        self._stack = ExitStack()
        self._places: dict[str, tuple[BinaryIO, int]] = {}
        self._missing: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stack.close()
        if kind is None and (short := [name for name, count in self._missing.items() if count]):
            raise OutsideError(f"{short[0]} did not arrive in full, so the checkpoint is not written")

    def add(self, path: Path, outlines: Mapping[str, Outline], metadata: Mapping[str, str] | None = None) -> None:
        """Begin a file with these tensors."""
        order = sorted(outlines, key=lambda name: ([*TYPES].index(outlines[name].name_of_type), name.encode()))
        header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
        offset = 0
        for name in order:
            end = offset + outlines[name].nbytes
            kind = TYPES[outlines[name].name_of_type]
            header[name] = {"dtype": kind, "shape": list(outlines[name].shape), "data_offsets": [offset, end]}
            offset = end
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        file = self._stack.enter_context(path.open("wb"))
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + offset)
        for name in order:
            self._places[name] = file, 8 + len(text) + header[name]["data_offsets"][0]  # type: ignore[index]
            self._missing[name] = outlines[name].nbytes

    def add_model(self, folder: Path, outlines: Mapping[str, Outline]) -> None:
        """Begin the files of a model's weights, several with an index if they are large."""
        empty = {name: torch.empty(each.shape, dtype=each.dtype, device="meta") for name, each in outlines.items()}
        split = split_torch_state_dict_into_shards(empty)
        for file, names in split.filename_to_tensors.items():
            self.add(folder / file, {name: outlines[name] for name in names}, {"format": "pt"})
        if split.is_sharded:
            index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
            (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2), encoding="utf-8")

    def write(self, chunks: Iterable[Chunk]) -> None:
        """Write the pieces of chunks, in any order."""
        for chunk in chunks:
            for piece in chunk:
                file, offset = self._places[piece.name]
                file.seek(offset + piece.start)
                file.write(piece.data.data)
                self._missing[piece.name] -= len(piece.data)
            if self._beat is not None:
                self._beat()


class TensorFile(Mapping[str, "Tensor"]):
    """The tensors of a safetensors file by name, each read when it is asked for; `outlines` are those of all.

    Every read opens the file by itself, so that what was read before is not mapped into memory any more. Sent to
    another process, it has the path and the outlines, and no tensor.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        types = {stored: getattr(torch, name) for name, stored in TYPES.items()}
        self.outlines: dict[str, Outline] = {}
        with safe_open(path, framework="pt") as file:
            for name in sorted(file.keys()):
                part = file.get_slice(name)
                self.outlines[name] = Outline(types[part.get_dtype()], tuple(part.get_shape()))

    def __getitem__(self, name: str) -> Tensor:
        shape = self.outlines[name].shape
        return self.rows(name, slice(0, shape[0] if shape else None))

    def __contains__(self, name: object) -> bool:
        return name in self.outlines

    def __iter__(self) -> Iterator[str]:
        return iter(self.outlines)

    def __len__(self) -> int:
        return len(self.outlines)

    def rows(self, name: str, rows: slice) -> Tensor:
        """Return rows of a tensor; a number has none, and is returned."""
        outline = self.outlines[name]
        with safe_open(self.path, framework="pt") as file:
            if not outline.shape:
                number: Tensor = file.get_tensor(name)
                return number
            first, end, _ = rows.indices(outline.shape[0])
            if first >= end:
                return torch.empty((0, *outline.shape[1:]), dtype=outline.dtype)
            part: Tensor = file.get_slice(name)[first:end]
            return part
