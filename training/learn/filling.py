"""Models on their way into memory: built without weights, cut into shards, then filled from their files.

A rank reads only the rows that it keeps, one tensor after another, so that it never has more in memory than its shard
and one tensor. Ranks that do not have the files get their rows from the first rank that has. Raises `BadInput` for
files that cannot be read.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch

from training import bases
from training.errors import BadInput, OutsideError
from training.learn.ranks import DistContext

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

SMALL = 64 * 2**20
"""Bytes of the largest file, beside weights, that a rank without a model's folder is sent."""


class Source(Protocol):
    """Where weights come from."""

    def rows(self, name: str, rows: slice) -> Tensor:
        """Return rows of the tensor with this Hugging Face parameter name; a number has none, and is returned."""


class InMemory:
    """The weights of a model that is in memory as a whole."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._tensors = dict(stored(model))

    def rows(self, name: str, rows: slice) -> Tensor:
        """See `Source`."""
        return self._tensors[name][rows] if self._tensors[name].dim() else self._tensors[name]


class Merged:
    """Weights to which adapters are added, in the number format `dtype`; `deltas` return what is added to a tensor."""

    def __init__(self, base: Source, deltas: Mapping[str, Callable[[], Tensor]], dtype: torch.dtype) -> None:
        self._base, self._deltas, self._dtype = base, deltas, dtype

    @torch.no_grad()
    def rows(self, name: str, rows: slice) -> Tensor:
        """See `Source`; the sum is the same whichever rows are asked for."""
        part = self._base.rows(name, rows)
        if name not in self._deltas:
            return part
        part = part.to(self._dtype, copy=True)
        part += self._deltas[name]()[rows].to(part.device)
        return part


def stored(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Yield (name in the model's files, tensor) of weights and of the buffers that are saved, tied ones once.

    Adapters are left out, and the layers that they adapt have the names that they had without.
    """
    unsaved = {name for name, _ in model.named_non_persistent_buffers()}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if ".lora_" not in name and name not in unsaved:
            yield name.replace(".base_layer.", "."), tensor


def matches(model: PreTrainedModel, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether tensors with these shapes are those of the model, each under its own name, tied ones once."""
    tensors = dict(stored(model))
    others = {name for name, _ in model.named_parameters(remove_duplicate=False)} - tensors.keys()
    return all(shapes.get(name) == (*tensor.shape,) for name, tensor in tensors.items()) and others.isdisjoint(shapes)


@torch.no_grad()
def replace(model: PreTrainedModel, change: Callable[[Tensor], Tensor]) -> None:
    """Replace weights and buffers by what `change` makes of them; tied weights stay tied."""
    names: dict[int, list[str]] = {}
    parameters = [*model.named_parameters(remove_duplicate=False)]  # alive, so that no id is used twice
    for name, parameter in parameters:
        names.setdefault(id(parameter), []).append(name)
    model._apply(change)  # noqa: SLF001 (what `to` and `to_empty` are made of)
    for first, *others in names.values():
        for owner, _, last in (name.rpartition(".") for name in others):
            setattr(model.get_submodule(owner), last, model.get_parameter(first))


def placeholder(tensor: Tensor) -> Tensor:
    """Return a tensor on the CPU that takes no memory, for a tensor on the meta device."""
    return torch.empty(1, dtype=tensor.dtype).expand(tensor.shape) if tensor.is_meta else tensor


def without_placeholder(tensor: Tensor) -> Tensor:
    """Return a tensor on the meta device for one that `placeholder` made."""
    stands_in = tensor.untyped_storage().nbytes() < tensor.numel() * tensor.itemsize
    return torch.empty_like(tensor, device="meta", memory_format=torch.contiguous_format) if stands_in else tensor


def fill(model: PreTrainedModel, source: Source | None, device: str, group: DistContext, *, bfloat16: bool) -> None:
    """Shard a model that has no weights yet over the ranks of `group`, and read this one's rows of every tensor.

    `source` is None on ranks that do not have the files. See `DistContext.shard` for `bfloat16`.
    """
    group.shard(model, bfloat16=bfloat16)
    replace(model, lambda t: torch.empty_like(t, device=device) if t.is_meta else t if group.many else t.to(device))
    refill(model, source, group)


def refill(model: PreTrainedModel, source: Source | None, group: DistContext) -> None:
    """Read this rank's rows of every tensor."""
    sender, receivers = group.senders(source is not None)
    if not receivers:
        with group.together():
            _read_all(model, source, group, sender, receivers)
        return
    try:
        _read_all(model, source, group, sender, receivers)
    except BadInput as error:  # the receivers wait for rows, so that they cannot be asked to raise it too
        raise OutsideError(str(error)) from error


def _read_all(
    model: PreTrainedModel, source: Source | None, group: DistContext, sender: int, receivers: tuple[int, ...]
) -> None:
    for name, tensor in stored(model):
        group.read(tensor, None if source is None else _reader(source, name), sender, receivers)


def _reader(source: Source, name: str) -> Callable[[slice], Tensor]:
    return lambda rows: source.rows(name, rows)


@contextmanager
def located(model: str | Path, group: DistContext) -> Iterator[tuple[Path, bool]]:
    """Yield a model's folder, and whether its weights are in it.

    A rank on a machine where the model is not gets a folder with the small files of a rank that has it, for as long as
    the context lasts.
    """
    here = _is_here(model)
    everywhere = group.gather(here)
    folder = None
    with group.together():
        if here or not any(everywhere):
            folder = bases.verified(model)
    if all(everywhere):
        assert folder is not None
        yield folder, True
        return
    sender = everywhere.index(True)
    files = _sent(_small_files(folder) if folder is not None and group.rank == sender else {}, group, sender)
    if folder is not None:
        yield folder, True
        return
    with tempfile.TemporaryDirectory(prefix="parley-model-") as temporary:
        for name, data in files.items():
            (Path(temporary) / name).write_bytes(data)
        yield Path(temporary), False


def _is_here(model: str | Path) -> bool:
    entry = bases.find(str(model))
    return bases.is_folder(model) if entry is None else bases.is_prepared(entry)


def _sent(files: Mapping[str, bytes], group: DistContext, sender: int) -> dict[str, bytes]:
    """Return the files of the rank `sender` on every rank; raise `OutsideError` for names of other folders."""
    sizes = json.loads(group.broadcast(json.dumps({name: len(data) for name, data in files.items()}).encode(), sender))
    if wrong := [name for name in sizes if name != Path(name).name]:
        raise OutsideError(f"another rank sent {wrong[0]!r}, which is no file of a model's folder")
    data, start, sent = group.broadcast(b"".join(files.values()), sender), 0, {}
    for name, size in sizes.items():
        sent[name] = data[start : start + size]
        start += size
    return sent


def _small_files(folder: Path) -> dict[str, bytes]:
    """Return what is needed of a model beside its weights; adapters are small."""
    weights = () if bases.is_adapter(folder) else (".safetensors", ".safetensors.index.json")
    files = (file for file in folder.iterdir() if file.is_file() and not file.name.endswith(weights))
    return {file.name: file.read_bytes() for file in files if file.stat().st_size <= SMALL}
