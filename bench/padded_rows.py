"""The other side of the measurement of packing: rows padded to the longest of a pass, sorted by length to pad little.

A pass is made from the packed one over the same items, so that both sides differ in nothing but the rows. Branches of
all rows begin in the same column, from which on a mask says what their tokens see.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch

from training.learn import batch as packing
from training.learn import update
from training.learn.batch import Batch, Item
from training.learn.policy import Policy
from training.learn.rows import PackedTrace, packed

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from training.learn.losses import Aggregate


@dataclass(frozen=True, slots=True)
class PaddedLayout:
    """The shape of the rows, and with branches the positions (B, L) and what the last T columns see, (B, 1, T, L)."""

    shape: tuple[int, int]
    positions: Tensor | None = None
    seen: Tensor | None = None

    def to(self, device: torch.device) -> PaddedLayout:
        """Return the layout on `device`."""
        if self.positions is None or self.seen is None:
            return self
        return PaddedLayout(self.shape, self.positions.to(device), self.seen.to(device))


def cut(items: Sequence[Item], tokens: int, ranks: int = 1) -> list[list[Item]]:
    """Return the items in groups whose padded size is at most `tokens` (a longer row is alone).

    Rows with branches come first, then long ones: what has no branches would be padded by those of the others. `ranks`
    is 1: padded rows were those of one process.
    """
    groups: list[list[Item]] = []
    for item in sorted(items, key=lambda item: (bool(item.branches), item.width), reverse=True):
        if groups and size([*groups[-1], item]) <= tokens:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def size(group: Sequence[Item]) -> int:
    """Return the number of tokens of a pass, with padding."""
    return len(group) * (max(map(len, group)) + max(item.width - len(item) for item in group))


def batches(items: Sequence[Item], tokens: int, how: Aggregate, ranks: int = 1) -> list[Batch]:
    """Return the padded passes of one update."""
    with patch.object(packing, "cut", cut):
        return [padded(batch) for batch in packing.batches(items, tokens, how, ranks)]


def padded(batch: Batch) -> Batch:
    """Return a pass in padded rows. Its ids are flat, (1, B·L), and so are its columns."""
    parts = packed([item for item in batch.items if item.trace.prefix is None])
    start = max(len(part.item) for part in parts if part.first == part.start)
    rows, columns, row, column = [], [], -1, 0
    for part in parts:
        if part.first == part.start:
            row, column, at = row + 1, start, 0
        else:
            at, column = column, column + len(part.item)
        rows.append(torch.full((len(part.item),), row))
        columns.append(torch.arange(at, at + len(part.item)))
    length = 1 + int(max(each[-1] for each in columns))
    moved = torch.cat(rows) * length + torch.cat(columns)
    ids = torch.zeros((1, (row + 1) * length), dtype=torch.long)
    ids[0, moved] = batch.ids[0]
    values = {head: (moved[at], *rest) for head, (at, *rest) in batch.values.items()}
    shape = (row + 1, length)
    layout = _layout(parts, rows, columns, start, shape)
    changed: dict[str, Any] = {"ids": ids, "values": values, "layout": layout}
    return replace(batch, at=moved[batch.at], before=moved[batch.before], **changed)


def _layout(
    parts: Sequence[PackedTrace], rows: Sequence[Tensor], columns: Sequence[Tensor], start: int, shape: tuple[int, int]
) -> PaddedLayout:
    count, length = shape
    if length == start:
        return PaddedLayout(shape)
    positions = torch.arange(length).repeat(count, 1)
    owner, prefix = (torch.zeros((count, length - start), dtype=torch.long) for _ in range(2))
    prefix += 1  # padding sees the first column: attention to nothing at all is not a number
    for number, (part, row, at) in enumerate(zip(parts, rows, columns, strict=True)):
        if part.first != part.start:
            positions[row, at] = torch.arange(part.prefix, part.prefix + len(part.item))
            owner[row, at - start], prefix[row, at - start] = number, part.prefix
    among = (owner[:, None, :] == owner[:, :, None]) & torch.ones(length - start, length - start).tril().bool()
    shared = (torch.arange(start) < prefix[:, :, None]).expand(count, length - start, start)
    return PaddedLayout(shape, positions, torch.cat((shared, among), dim=2)[:, None])


@contextmanager
def instead(policy: Policy) -> Iterator[None]:
    """Let updates of `policy` read padded rows while the block runs."""

    def hidden(ids: Tensor, model: PreTrainedModel | None = None, layout: PaddedLayout | None = None) -> Tensor:
        assert layout is not None, "updates give the layout of their rows"
        more = {} if layout.seen is None else {"position_ids": layout.positions, "attention_mask": layout.seen}
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=policy.learn.autocast):
            base: Any = (model or policy.inner).base_model
            states: Tensor = base(input_ids=ids.view(layout.shape), use_cache=False, **more).last_hidden_state
        return states.reshape(1, ids.shape[1], -1)

    with patch.object(update, "batches", batches), patch.object(policy, "hidden", hidden):
        yield
