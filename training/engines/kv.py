"""Keys and values of prompts already read: a store of whole prefixes, and the padded batch that is decoded.

A conversation's prompt only grows, so the keys and values of its last turn are the start of its next one. The store
is bounded in bytes, forgets the oldest entry first (a newer turn's entry contains it), and is emptied when the
weights change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from transformers.cache_utils import Cache, DynamicLayer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedConfig


class Shape(NamedTuple):
    """Sizes of one token's keys and values."""

    layers: int
    heads: int
    size: int

    @classmethod
    def of(cls, config: PreTrainedConfig) -> Shape:
        """Return the sizes that a model's configuration implies."""
        heads = config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        return cls(config.num_hidden_layers, getattr(config, "num_key_value_heads", None) or heads, size)


class PrefixStore:
    """Keys and values by token prefix: each entry is a tensor [layers, 2, heads, tokens, size]."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity  # bytes
        self._bytes = 0
        self._entries: OrderedDict[tuple[int, ...], Tensor] = OrderedDict()

    def find(self, tokens: Sequence[int]) -> Tensor | None:
        """Return the longest stored prefix of `tokens` that leaves at least one token to read; None if none is."""
        for length in sorted({len(key) for key in self._entries}, reverse=True):
            if length < len(tokens) and (found := self._entries.get(tuple(tokens[:length]))) is not None:
                return found
        return None

    def put(self, tokens: Sequence[int], entry: Tensor) -> None:
        """Keep the keys and values of exactly `tokens`."""
        key = tuple(tokens)
        if entry.nbytes > self._capacity or not key:
            return
        if (old := self._entries.pop(key, None)) is not None:
            self._bytes -= old.nbytes
        self._entries[key] = entry
        self._bytes += entry.nbytes
        while self._bytes > self._capacity:
            _, dropped = self._entries.popitem(last=False)
            self._bytes -= dropped.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0


class _Layer(DynamicLayer):
    """One layer's keys and values in a buffer of fixed capacity; `update` writes behind what is there."""

    def __init__(self, keys: Tensor, values: Tensor, used: int) -> None:
        super().__init__()
        self.buffers = (keys, values)
        self.dtype, self.device = keys.dtype, keys.device
        self.is_initialized = True
        self.show(used)

    def show(self, used: int) -> None:
        self.used = used
        self.keys, self.values = (buffer[:, :, :used] for buffer in self.buffers)

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        start, end = self.used, self.used + key_states.shape[-2]
        self.buffers[0][:, :, start:end] = key_states
        self.buffers[1][:, :, start:end] = value_states
        self.show(end)
        return self.keys, self.values


class PaddedCache:
    """Keys and values of B rows side by side, aligned at their ends, with `mask` [B, columns] telling the real ones.

    Rows have holes: padding before what was cached and again before what is new. Order and positions are right all
    the same, since positions are given to the model and order is that of the columns.
    """

    def __init__(self, shape: Shape, cached: Sequence[Tensor | None], capacity: int, like: Tensor) -> None:
        width = max(0 if entry is None else entry.shape[3] for entry in cached)
        size = (len(cached), shape.heads, width + capacity, shape.size)
        # zeros: what the mask hides must still be a number
        buffers = [(like.new_zeros(size), like.new_zeros(size)) for _ in range(shape.layers)]
        self.mask = torch.zeros(len(cached), width + capacity, dtype=torch.bool, device=like.device)
        for row, entry in enumerate(cached):
            if entry is None:
                continue
            start = width - entry.shape[3]
            self.mask[row, start:width] = True
            for (keys, values), pair in zip(buffers, entry, strict=True):
                keys[row, :, start:width] = pair[0]
                values[row, :, start:width] = pair[1]
        self.layers = [_Layer(keys, values, width) for keys, values in buffers]
        self.cache = Cache(layers=list(self.layers))

    @property
    def used(self) -> int:
        """Columns in use."""
        return self.layers[0].used

    def row(self, index: int) -> Tensor:
        """Return a copy of one row's keys and values without padding: [layers, 2, heads, tokens, size]."""
        real = self.mask[index, : self.used]
        return torch.stack(
            [torch.stack((layer.keys[index][:, real], layer.values[index][:, real])) for layer in self.layers]
        )

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these."""
        index = torch.tensor(list(rows), device=self.mask.device)
        self.mask = self.mask[index]
        for layer in self.layers:
            keys, values = layer.buffers
            layer.buffers = (keys[index], values[index])
            layer.show(layer.used)

    def visible(self, start: int, end: int) -> Tensor:
        """Return the attention mask [B, 1, end - start, end] of the columns start..end: real, and not later.

        A padding column sees itself, for attention to nothing at all is not a number.
        """
        columns = torch.arange(end, device=self.mask.device)
        rows = columns[start:end].unsqueeze(1)
        seen = (columns <= rows) & self.mask[:, None, None, :end]
        return seen | (columns == rows)
