"""Embeddings of turns: hidden states of a frozen causal language model, pooled over each turn's tokens.

Raises `BadInput` for a model that is not prepared, and for a layer that it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from training.engines.pooling import Pooling
from training.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    States = NDArray[np.float32]

TURN_TOKENS = 1024
"""Of a longer turn the last tokens are read."""
PASSAGE_TOKENS = 2 * TURN_TOKENS + 1
"""With the context `dialogue`, a longer dialogue is read in passages of at most this many tokens, one by one."""
BATCH_TOKENS = 2048
"""Tokens of a forward pass, with padding; a single passage may be longer."""


class Passage(NamedTuple):
    """Tokens of one forward pass, and the (turn, begin, end) of every turn that is pooled from it."""

    tokens: list[int]
    spans: list[tuple[int, int, int]]


def embed(
    texts: Sequence[str],
    base: str,
    pooling: Pooling,
    dialogues: Sequence[Hashable] | None = None,
    device: str = "cpu",
) -> States:
    """Return the embeddings (n, d) of n turns; see `embed_all`."""
    return embed_all(texts, base, [pooling], dialogues, device)[pooling]


def embed_all(
    texts: Sequence[str],
    base: str,
    poolings: Sequence[Pooling],
    dialogues: Sequence[Hashable] | None = None,
    device: str = "cpu",
) -> dict[Pooling, States]:
    """Return the embeddings (n, d) of n turns by pooling, from one pass of the model for each kind of context.

    See `Embedder.embed` for `dialogues`.
    """
    return Embedder(base, device).embed(texts, poolings, dialogues)


class Embedder:
    """A frozen model in memory, for as many calls as are wanted; `base` is a registered model or a folder."""

    def __init__(self, base: str, device: str = "cpu") -> None:
        from training.engines.local.loading import load_merged, load_tokenizer

        self._base, self._device = base, device
        self._model, self._tokenizer = load_merged(base, "float32").to(device), load_tokenizer(base)

    def embed(
        self,
        texts: Sequence[str],
        poolings: Sequence[Pooling],
        dialogues: Sequence[Hashable] | None = None,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> dict[Pooling, States]:
        """Return the embeddings (n, d) of n turns by pooling, from one pass for each kind of context.

        `dialogues` names the dialogue of every turn; the turns of a dialogue stand next to each other, in their order.
        Without it every turn is a dialogue of its own. `progress` is called with the number of turns that were read,
        each once for a kind of context, and of all.
        """
        import torch

        model, tokenizer = self._model, self._tokenizer
        layers = int(model.config.num_hidden_layers)
        for pooling in poolings:
            if not 0 <= pooling.layer <= layers:
                raise BadInput(f"{self._base} has layers 0 to {layers}, not {pooling.layer}", "layer")
        # a line break ends every turn: a turn without text has a token, too
        turns = [tokenizer.encode(f"{text}\n", add_special_tokens=False)[-TURN_TOKENS:] for text in texts]
        first = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None else tokenizer.encode("\n")
        width = int(model.config.hidden_size)
        embeddings = {pooling: np.empty((len(texts), width), np.float32) for pooling in poolings}
        contexts = dict.fromkeys(pooling.context for pooling in poolings)
        done, total = 0, len(contexts) * len(texts)
        for context in contexts:
            wanted = {pooling: rows for pooling, rows in embeddings.items() if pooling.context == context}
            for batch in batches(list(passages(turns, dialogues or range(len(turns)), context, first))):
                longest = max(len(passage.tokens) for passage in batch)
                # attention is causal, so that padding on the right changes nothing before it
                ids = torch.tensor([passage.tokens + [0] * (longest - len(passage.tokens)) for passage in batch])
                with torch.no_grad():
                    output = model.base_model(
                        input_ids=ids.to(self._device), use_cache=False, output_hidden_states=True
                    )
                _pool(output.hidden_states, batch, wanted)
                done += sum(len(passage.spans) for passage in batch)
                progress(done, total)
        return embeddings


def _pool(hidden: Sequence[Tensor], batch: Sequence[Passage], wanted: dict[Pooling, States]) -> None:
    """Write the embeddings of a batch's turns into their rows; `hidden` has a tensor (B, T, d) for each layer."""
    for pooling, rows in wanted.items():
        states = hidden[pooling.layer].float().cpu().numpy()
        for row, passage in enumerate(batch):
            for turn, begin, end in passage.spans:
                rows[turn] = states[row, begin:end].mean(axis=0) if pooling.how == "mean" else states[row, end - 1]


def passages(
    turns: Sequence[list[int]], dialogues: Sequence[Hashable], context: str, first: list[int]
) -> Iterator[Passage]:
    """Yield what the model reads: passages that begin with the tokens `first`, each turn being in the spans of one."""
    for _, group in groupby(range(len(turns)), key=lambda turn: dialogues[turn]):
        numbers = list(group)
        if context == "dialogue":
            yield from _windows(turns, numbers, first)
            continue
        for at, turn in enumerate(numbers):
            before = turns[numbers[at - 1]] if context == "previous" and at else []
            tokens = [*first, *before, *turns[turn]]
            yield Passage(tokens, [(turn, len(tokens) - len(turns[turn]), len(tokens))])


def _windows(turns: Sequence[list[int]], numbers: Sequence[int], first: list[int]) -> Iterator[Passage]:
    """Yield a dialogue as one passage, or as several where it is longer than `PASSAGE_TOKENS`."""
    passage = Passage(list(first), [])
    for turn in numbers:
        if passage.spans and len(passage.tokens) + len(turns[turn]) > PASSAGE_TOKENS:
            yield passage
            passage = Passage(list(first), [])
        begin = len(passage.tokens)
        passage.tokens.extend(turns[turn])
        passage.spans.append((turn, begin, len(passage.tokens)))
    yield passage


def batches(read: Sequence[Passage]) -> Iterator[list[Passage]]:
    """Yield passages of similar length together, so that little is padding."""
    batch: list[Passage] = []
    for passage in sorted(read, key=lambda passage: len(passage.tokens)):
        if batch and len(passage.tokens) * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(passage)
    if batch:
        yield batch
