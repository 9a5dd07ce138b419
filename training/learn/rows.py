"""Rows of a forward pass: a trace, then the traces that continue a prefix of it, computed at the cost of their tokens.

A branch's tokens have the positions that follow its prefix, and see that prefix and each other; no other token sees
them. So a row gives the log-probabilities and gradients of separate passes over each whole sequence, while the prefix
is computed once. The branches of all rows begin in the same column: a mask is needed from there on alone, and the
traces are attended to as without branches (`training.engines.local.attention`). The keys and values of a cache would
need a second pass, and none may be kept where activations are computed again (`learn.recompute`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from training.learn.batch import Item

    Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """The tokens of one trace in a row: they begin in column `first`, after the first `prefix` tokens of the row."""

    item: Item
    row: int
    first: int
    prefix: int

    @property
    def columns(self) -> slice:
        """The columns of its tokens."""
        return slice(self.first, self.first + len(self.item))

    def before(self, places: Places) -> Places:
        """Return the columns of the states from which the tokens at `places` of the trace are predicted."""
        return np.where(places == 0, self.prefix, self.first + places) - 1


class Layout(NamedTuple):
    """Positions (B, L) of the tokens of rows with branches, and what the last T columns see (B, 1, T, L)."""

    positions: Tensor
    seen: Tensor

    def to(self, device: torch.device) -> Layout:
        """Return the layout on `device`."""
        return Layout(self.positions.to(device), self.seen.to(device))


def packed(items: Sequence[Item]) -> list[Part]:
    """Return where the items and their branches stand, one row for each item."""
    parts = []
    start = max(len(item) for item in items)
    for row, item in enumerate(items):
        parts.append(Part(item, row, 0, 0))
        column = start
        for branch in item.branches:
            assert branch.trace.prefix is not None, "a branch continues a prefix"
            parts.append(Part(branch, row, column, branch.trace.prefix[1]))
            column += len(branch)
    return parts


def padded(parts: Sequence[Part]) -> Tensor:
    """Return the token ids of the rows, (B, L), zeros on the right."""
    ids = torch.zeros(_shape(parts), dtype=torch.long)
    for part in parts:
        ids[part.row, part.columns] = torch.tensor(part.item.trace.tokens)
    return ids


def layout(parts: Sequence[Part]) -> Layout | None:
    """Return the layout of the rows; None without branches, where tokens simply follow each other."""
    if not any(part.first for part in parts):
        return None
    rows, length = _shape(parts)
    start = min(part.first for part in parts if part.first)
    columns = torch.arange(length)
    positions = columns.repeat(rows, 1)
    owner, prefix = (torch.zeros((rows, length - start), dtype=torch.long) for _ in range(2))
    prefix += 1  # padding sees the first column: attention to nothing at all is not a number
    for number, part in enumerate(parts):
        if part.first:
            tail = (part.row, slice(part.first - start, part.columns.stop - start))
            positions[part.row, part.columns] = torch.arange(part.prefix, part.prefix + len(part.item))
            owner[tail], prefix[tail] = number, part.prefix
    among = (owner[:, None, :] == owner[:, :, None]) & torch.ones(length - start, length - start).tril().bool()
    shared = (columns[:start] < prefix[:, :, None]).expand(rows, length - start, start)
    return Layout(positions, torch.cat((shared, among), dim=2)[:, None])


def _shape(parts: Sequence[Part]) -> tuple[int, int]:
    return 1 + max(part.row for part in parts), max(part.columns.stop for part in parts)
