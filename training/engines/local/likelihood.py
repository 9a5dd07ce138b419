"""Log-probabilities of continuations after prefixes by a Transformers model, for `Engine.score`: one pass for many.

A row is what of a prefix is not stored, how all continuations begin, then the rest of each side by side, which sees
what comes before and itself. Rows are aligned at their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch

from training.engines.local.kv import RowCache, Shape, shared

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class ScoreQuery:
    """What is read once, of which the last `common` tokens begin every continuation, and what follows in each.

    `stored` are keys and values of its first tokens [layers, 2, heads, tokens, size]; one or more are left to read.
    """

    prefix: Sequence[int]
    continuations: Sequence[Sequence[int]]
    common: int
    stored: Tensor | None

    @classmethod
    def of(cls, prefix: Sequence[int], continuations: Sequence[Sequence[int]], stored: Tensor | None) -> ScoreQuery:
        """Return the query for `continuations` after `prefix`."""
        common = reduce(lambda first, second: first[: shared(first, second)], continuations)
        rest = [tokens[len(common) :] for tokens in continuations]
        return cls([*prefix, *common], rest, len(common), stored)

    @property
    def known(self) -> int:
        """The number of stored tokens."""
        return 0 if self.stored is None else self.stored.shape[3]

    @property
    def parts(self) -> list[list[int]]:
        """What is read: the rest of the prefix, and each continuation but its last token, which predicts nothing."""
        return [list(self.prefix[self.known :]), *(list(tokens[:-1]) for tokens in self.continuations)]

    def __len__(self) -> int:
        return sum(map(len, self.parts))


@torch.no_grad()
def summed_logprobs(model: Any, queries: Sequence[ScoreQuery]) -> list[list[float]]:
    """Return log p(continuation | prefix) summed over tokens, 0 for an empty one, for every query."""
    rows, device = len(queries), model.device
    width = max(map(len, queries))
    end = max(query.known + len(query) for query in queries)
    ids, positions = (torch.zeros((rows, width), dtype=torch.long) for _ in range(2))
    columns = torch.full((rows, width), -1)
    seen = torch.zeros((rows, 1, width, end), dtype=torch.bool)
    seen[..., 0] = True  # for padding: attention to nothing at all is not a number
    for row, query in enumerate(queries):
        _lay(query, ids[row], positions[row], columns[row], seen[row, 0])
    shape, like = Shape.of(model.config), model.get_input_embeddings().weight
    cache = RowCache(shape, [query.stored for query in queries], end, like)
    cache.open(slice(None), columns.to(device), end)
    kept = 1 + max(len(query) - len(query.parts[0]) + query.common for query in queries)
    logits = model(
        input_ids=ids.to(device),
        position_ids=positions.to(device),
        attention_mask=seen.to(device),
        past_key_values=cache.cache,
        use_cache=True,
        logits_to_keep=kept,
    ).logits
    places = [(row, kept + at) for row, query in enumerate(queries) for at in _before(query)]
    targets = [token for query in queries for tokens in _scored(query) for token in tokens]
    table = logits[tuple(torch.tensor(places, device=device).unbind(1))].float().log_softmax(-1)
    logprobs = iter(table.gather(1, torch.tensor(targets, device=device)[:, None]).squeeze(1).double().tolist())
    sums = [[sum(next(logprobs) for _ in tokens) for tokens in _scored(query)] for query in queries]
    return [[common + rest for rest in rests] for common, *rests in sums]


def _scored(query: ScoreQuery) -> list[Sequence[int]]:
    """Return the tokens whose log-probabilities are summed: the common ones, then those of each continuation."""
    return [query.prefix[len(query.prefix) - query.common :], *query.continuations]


def _lay(query: ScoreQuery, ids: Tensor, positions: Tensor, columns: Tensor, seen: Tensor) -> None:
    """Write one query's tokens, positions, columns in the cache (each [T]) and what they see ([T, columns])."""
    at, column = len(ids) - len(query), query.known
    for number, tokens in enumerate(query.parts):
        length = len(tokens)
        rows, cells = slice(at, at + length), slice(column, column + length)
        before = len(query.prefix) if number else query.known
        ids[rows] = torch.tensor(tokens, dtype=torch.long)
        positions[rows] = torch.arange(before, before + length)
        columns[rows] = torch.arange(cells.start, cells.stop)
        seen[rows, :before] = True
        seen[rows, cells] = torch.ones(length, length, dtype=torch.bool).tril()
        at, column = rows.stop, cells.stop


def _before(query: ScoreQuery) -> list[int]:
    """Return where the scored tokens are predicted, counted from the row's end: -1 is its last token."""
    prefix, *continuations = query.parts
    at = len(prefix) - len(query)
    end = at - 1
    places = [*range(end - query.common, end)]
    for whole, tokens in zip(query.continuations, continuations, strict=True):
        if whole:
            places += [end, *range(at, at + len(tokens))]
        at += len(tokens)
    return places
