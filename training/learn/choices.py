"""The tokens that were allowed where decoding was limited, as tensors: what log-probabilities are renormalised over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from training.records import Trace


class Choices(NamedTuple):
    """The allowed tokens of M of N positions: `rows` (M,), ascending, and `ids` (M, K); an id may occur repeatedly."""

    rows: Tensor
    ids: Tensor

    def to(self, device: torch.device) -> Choices:
        """Return the choices on `device`."""
        return Choices(self.rows.to(device), self.ids.to(device))

    def pieces(self, count: int, chunk: int) -> list[Choices | None]:
        """Return the choices of each chunk of `count` positions, rows counted from its start; None where it has none.

        They are cut once, so that a GPU is waited for once and not in every chunk.
        """
        starts = range(0, count, chunk)
        edges = torch.tensor([*starts, count], device=self.rows.device)
        cuts = torch.searchsorted(self.rows, edges).tolist()
        return [
            Choices(self.rows[low:high] - start, self.ids[low:high]) if low < high else None
            for start, low, high in zip(starts, cuts[:-1], cuts[1:], strict=True)
        ]


def choices_at(traces: Sequence[Trace], places: Sequence[NDArray[np.int64]]) -> Choices | None:
    """Return what was allowed at `places` of each trace, rows counted through all of them; None if nothing was limited.

    Shorter lists of ids are filled up by one of their own.
    """
    rows: list[int] = []
    allowed: list[tuple[int, ...]] = []
    start = 0
    for trace, at in zip(traces, places, strict=True):
        if trace.choices:
            limited = [(row, ids) for row, p in enumerate(at.tolist(), start) if (ids := trace.choices.get(p))]
            rows += [row for row, _ in limited]
            allowed += [ids for _, ids in limited]
        start += len(at)
    if not rows:
        return None
    widest = max(map(len, allowed))
    return Choices(torch.tensor(rows), torch.tensor([(*ids, *ids[:1] * (widest - len(ids))) for ids in allowed]))
