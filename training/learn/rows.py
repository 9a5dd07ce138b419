"""The packed row of a forward pass: traces one after the other, each followed by the traces that continue a prefix.

The row has no padding. The tokens of a trace see each other alone, and positions begin anew for each trace. The tokens
of a branch have the positions that follow its prefix, and see that prefix and each other; no other token sees them.
So a row gives the log-probabilities and gradients of separate passes over each whole sequence, while a prefix is
computed once. Only branches need a mask: each trace with branches has a small one of its own
(`training.engines.local.attention`). The keys and values of a cache would need a second pass, and none may be kept
where activations are computed again (`learn.recompute`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from training.engines.local.attention import Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from training.learn.batch import Item

    Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PackedTrace:
    """One trace in a packed row: its tokens begin in column `first`. Those of a branch come after the first `prefix`
    tokens of the trace that begins in column `start`.
    """

    item: Item
    first: int
    start: int
    prefix: int = 0

    @property
    def columns(self) -> slice:
        """The columns of its tokens."""
        return slice(self.first, self.first + len(self.item))

    def before(self, places: Places) -> Places:
        """Return the columns of the states from which the tokens at `places` of the trace are predicted."""
        return np.where(places == 0, self.start + self.prefix, self.first + places) - 1


class Layout(NamedTuple):
    """Positions (1, T) of the tokens of a row, and its segments: a trace and its branches are one."""

    positions: Tensor
    segments: Segments

    def to(self, device: torch.device) -> Layout:
        """Return the layout on `device`."""
        return Layout(self.positions.to(device), self.segments.to(device))


def packed(items: Sequence[Item]) -> list[PackedTrace]:
    """Return where the items and their branches stand in one row."""
    parts, column = [], 0
    for item in items:
        start = column
        parts.append(PackedTrace(item, start, start))
        column += len(item)
        for branch in item.branches:
            assert branch.trace.prefix is not None, "a branch continues a prefix"
            parts.append(PackedTrace(branch, column, start, branch.trace.prefix[1]))
            column += len(branch)
    return parts


def token_ids(parts: Sequence[PackedTrace]) -> Tensor:
    """Return the token ids of the row, (1, T)."""
    return torch.tensor([[token for part in parts for token in part.item.trace.tokens]], dtype=torch.long)


def layout(parts: Sequence[PackedTrace]) -> Layout:
    """Return the layout of the row."""
    positions = [torch.arange(part.prefix, part.prefix + len(part.item)) for part in parts]
    heads = [part for part in parts if part.first == part.start]
    segments = Segments.of([head.item.width for head in heads], [_seen(head.item) for head in heads])
    return Layout(torch.cat(positions)[None], segments)


def _seen(item: Item) -> Tensor | None:
    """Return what the tokens of the branches see of a trace and its branches, (1, 1, tokens, width)."""
    if not item.branches:
        return None
    trace, branches = len(item), [len(branch) for branch in item.branches]
    seen = torch.zeros((1, 1, sum(branches), item.width), dtype=torch.bool)
    for part, last in zip(packed([item])[1:], np.cumsum(branches).tolist(), strict=True):
        rows = slice(last - len(part.item), last)
        seen[0, 0, rows, : part.prefix] = True
        seen[0, 0, rows, trace + rows.start : trace + rows.stop] = torch.ones(len(part.item), len(part.item)).tril()
    return seen
