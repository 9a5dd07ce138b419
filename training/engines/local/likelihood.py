"""Log-probabilities of continuations after prefixes by a Transformers model, for `Engine.score`: one pass for many.

A row is what of a prefix is not stored, then its continuations side by side: each sees the prefix and itself. Rows are
aligned at their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from training.engines.local.kv import RowCache, Shape

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Question:
    """A prefix with its continuations; `stored` are keys and values of its first tokens, not of all.

    `stored` is [layers, 2, heads, tokens, size].
    """

    prefix: Sequence[int]
    continuations: Sequence[Sequence[int]]
    stored: Tensor | None = None

    @property
    def known(self) -> int:
        """The number of stored tokens."""
        return 0 if self.stored is None else self.stored.shape[3]

    @property
    def parts(self) -> list[list[int]]:
        """What is read: the rest of the prefix, and each continuation without its last token, which predicts nothing."""
        return [list(self.prefix[self.known :]), *(list(tokens[:-1]) for tokens in self.continuations)]

    def __len__(self) -> int:
        return sum(map(len, self.parts))


@torch.no_grad()
def summed_logprobs(model: Any, questions: Sequence[Question]) -> list[list[float]]:
    """Return log p(continuation | prefix) summed over tokens, 0 for an empty one, for every question."""
    rows, device = len(questions), model.device
    width = max(map(len, questions))
    end = max(question.known + len(question) for question in questions)
    ids, positions = (torch.zeros((rows, width), dtype=torch.long) for _ in range(2))
    columns = torch.full((rows, width), -1)
    seen = torch.zeros((rows, 1, width, end), dtype=torch.bool)
    seen[..., 0] = True  # for padding: attention to nothing at all is not a number
    for row, question in enumerate(questions):
        _lay(question, ids[row], positions[row], columns[row], seen[row, 0])
    shape, like = Shape.of(model.config), model.get_input_embeddings().weight
    cache = RowCache(shape, [question.stored for question in questions], end, like)
    cache.open(slice(None), columns.to(device), end)
    kept = 1 + max(len(question) - len(question.parts[0]) for question in questions)
    logits = model(
        input_ids=ids.to(device),
        position_ids=positions.to(device),
        attention_mask=seen.to(device),
        past_key_values=cache.cache,
        use_cache=True,
        logits_to_keep=kept,
    ).logits
    places = [(row, kept + at) for row, question in enumerate(questions) for at in _before(question)]
    targets = [token for question in questions for tokens in question.continuations for token in tokens]
    table = logits[tuple(torch.tensor(places, device=device).unbind(1))].float().log_softmax(-1)
    logprobs = iter(table.gather(1, torch.tensor(targets, device=device)[:, None]).squeeze(1).double().tolist())
    return [[sum(next(logprobs) for _ in tokens) for tokens in question.continuations] for question in questions]


def _lay(question: Question, ids: Tensor, positions: Tensor, columns: Tensor, seen: Tensor) -> None:
    """Write one question's tokens, positions, columns in the cache (each [T]) and what they see ([T, columns])."""
    at, column = len(ids) - len(question), question.known
    for number, tokens in enumerate(question.parts):
        length = len(tokens)
        new, own = slice(at, at + length), slice(column, column + length)
        before = len(question.prefix) if number else question.known
        ids[new] = torch.tensor(tokens, dtype=torch.long)
        positions[new] = torch.arange(before, before + length)
        columns[new] = torch.arange(own.start, own.stop)
        seen[new, :before] = True
        seen[new, own] = torch.ones(length, length, dtype=torch.bool).tril()
        at, column = new.stop, own.stop


def _before(question: Question) -> list[int]:
    """Return where the continuations' tokens are predicted, counted from the row's end: -1 is its last token."""
    prefix, *continuations = question.parts
    at = len(prefix) - len(question)
    end, places = at - 1, []
    for whole, tokens in zip(question.continuations, continuations, strict=True):
        if whole:
            places += [end, *range(at, at + len(tokens))]
        at += len(tokens)
    return places
