"""Rows of a forward pass: a trace, then the traces that continue a prefix of it, computed at the cost of their tokens.

A branch's tokens have the positions that follow its prefix, and see that prefix and each other; no other token sees
them. So a row gives the log-probabilities and gradients of separate passes over each whole sequence, while the prefix
is computed once. The keys and values of a cache would need a second pass, and none may be kept where activations are
computed again (`learn.recompute`).
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
    """Positions (B, L) of the tokens of rows with branches, and which columns each token sees (B, 1, L, L)."""

    positions: Tensor
    seen: Tensor

    def to(self, device: torch.device) -> Layout:
        """Return the layout on `device`."""
        return Layout(self.positions.to(device), self.seen.to(device))


def packed(items: Sequence[Item]) -> list[Part]:
    """Return where the items and their branches stand, one row for each item."""
    parts = []
    for row, item in enumerate(items):
        parts.append(Part(item, row, 0, 0))
        column = len(item)
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
    columns = torch.arange(length)
    positions = columns.repeat(rows, 1)
    owner = torch.zeros((rows, length), dtype=torch.long)
    prefix = torch.full((rows, length), length)
    for number, part in enumerate(parts):
        if part.first:
            where = (part.row, part.columns)
            positions[where] = torch.arange(part.prefix, part.prefix + len(part.item))
            owner[where], prefix[where] = number, part.prefix
    shared = (owner == 0)[:, None, :] & (columns < prefix[:, :, None])
    seen = (columns <= columns[:, None]) & (shared | (owner[:, None, :] == owner[:, :, None]))
    return Layout(positions, seen[:, None])


def _shape(parts: Sequence[Part]) -> tuple[int, int]:
    return 1 + max(part.row for part in parts), max(part.columns.stop for part in parts)
