"""Key-value caches: a store of prefixes that were already computed, and the cache of the batch that is decoded.

A conversation's prompt only grows, so the keys and values of one turn are a prefix of the next turn's; other
conversations share the rules as a prefix. The store is bounded in bytes, drops the oldest entry first (a newer turn's
entry contains it), and is cleared when the weights change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from transformers.cache_utils import Cache, DynamicLayer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedConfig


BLOCK = 8
"""Number of tokens per block; prefixes are looked up in whole blocks."""
_Key = tuple[str, tuple[int, ...]]
"""An adapter, and the tokens that were read under it."""


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
    """Keys and values by tokens: each entry is a tensor [layers, 2, heads, tokens, size].

    Every prefix of whole blocks maps to the newest entry that has it. Those of each adapter are its own.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity  # bytes
        self._bytes = 0
        self._entries: OrderedDict[_Key, Tensor] = OrderedDict()
        self._newest: dict[int, _Key] = {}  # by the hash of a prefix

    def find(self, tokens: Sequence[int], adapter: str = "") -> Tensor | None:
        """Return the stored keys and values of a long prefix of `tokens` that leaves at least one token, or None.

        The result may be up to `BLOCK - 1` tokens shorter than the longest stored prefix.
        """
        readable = tuple(tokens[:-1])
        starts = list(_starts((adapter, readable)))
        for blocks in range(len(starts), 0, -1):
            key = self._newest.get(starts[blocks - 1])
            if key is not None and (key[0], key[1][: blocks * BLOCK]) == (adapter, readable[: blocks * BLOCK]):
                return self._entries[key][:, :, :, : shared(key[1], readable, blocks * BLOCK)]
        return None

    def put(self, tokens: Sequence[int], entry: Tensor, adapter: str = "") -> None:
        """Store the keys and values of exactly `tokens`."""
        key = adapter, tuple(tokens)
        if entry.nbytes > self._capacity or len(tokens) < BLOCK:
            return
        if (old := self._entries.pop(key, None)) is not None:
            self._bytes -= old.nbytes
        self._entries[key] = entry
        self._newest |= dict.fromkeys(_starts(key), key)
        self._bytes += entry.nbytes
        while self._bytes > self._capacity:
            oldest, dropped = self._entries.popitem(last=False)
            self._bytes -= dropped.nbytes
            for start in _starts(oldest):
                if self._newest.get(start) == oldest:
                    del self._newest[start]

    def clear(self) -> None:
        """Delete all entries."""
        self._entries.clear()
        self._newest.clear()
        self._bytes = 0


def _starts(key: _Key) -> Iterator[int]:
    """Yield the hash of every prefix of whole blocks, the shortest first."""
    adapter, tokens = key
    digest = hash(adapter)
    for end in range(BLOCK, len(tokens) + 1, BLOCK):
        digest = hash((digest, tokens[end - BLOCK : end]))
        yield digest


def shared(first: Sequence[int], second: Sequence[int], start: int = 0) -> int:
    """Return the length of the common prefix, which is at least `start`."""
    pairs = enumerate(zip(first[start:], second[start:], strict=False), start)
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


class _Layer(DynamicLayer):
    """One layer's keys and values of the current rows; `update` writes to the columns that `RowCache.open` set."""

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.dtype, self.device = like.dtype, like.device
        self.is_initialized = True

    def open(self, table: Tensor, columns: Tensor, end: int) -> None:
        """Show the first `end` columns of a table [rows, 2, heads, columns, size]; new tokens go to `columns`."""
        self.buffers, self.columns = table.unbind(1), columns
        self.rows = torch.arange(len(columns), device=columns.device).unsqueeze(1)
        self.keys, self.values = table[:, :, :, :end].unbind(1)

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[self.rows, :, self.columns] = states.transpose(1, 2)
        return self.keys, self.values


class RowCache:
    """Keys and values of B rows side by side. A token's column is its position, so a row has no holes.

    `lengths` tells how many tokens of each row have been read.
    """

    def __init__(self, shape: Shape, cached: Sequence[Tensor | None], capacity: int, like: Tensor) -> None:
        self.lengths = [0 if entry is None else entry.shape[3] for entry in cached]
        # zeros, because unwritten entries must be finite numbers; padding writes to the last column
        self._table = like.new_zeros(len(cached), shape.layers, 2, shape.heads, capacity + 1, shape.size)
        for row, entry in enumerate(cached):
            if entry is not None:
                self._table[row, :, :, :, : entry.shape[3]] = entry
        self._layers = [_Layer(like) for _ in range(shape.layers)]
        self.cache = Cache(layers=list(self._layers))

    def open(self, rows: slice, positions: Tensor, end: int) -> Tensor:
        """Make the rows ready for tokens at `positions` [R, tokens], all below `end`; -1 stands for padding.

        Return which columns each of the tokens sees: a mask [R, 1, tokens, end].
        """
        for layer, table in zip(self._layers, self._table[rows].unbind(1), strict=True):
            layer.open(table, positions, end)
        columns = torch.arange(end, device=positions.device)
        # padding sees the first column: attention to nothing at all is not a number
        return columns <= positions.clamp(min=0)[:, None, :, None]

    def row(self, index: int) -> Tensor:
        """Return a copy of one row's keys and values: [layers, 2, heads, tokens, size]."""
        return self._table[index, :, :, :, : self.lengths[index]].clone()

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, in ascending order.

        They move to the front of the table, because a second table would double the peak of memory.
        """
        for index, row in enumerate(rows):
            if index != row:
                tokens = slice(self.lengths[row])
                self._table[index, :, :, :, tokens] = self._table[row, :, :, :, tokens]
        self.lengths = [self.lengths[row] for row in rows]
        self._table = self._table[: len(rows)]
