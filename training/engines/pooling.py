"""Which hidden states of a model are the embedding of a turn."""

from __future__ import annotations

from typing import Literal

from training.reading import Record


class Pooling(Record):
    """Which hidden states of a turn are its embedding.

    `layer` is 0 for the token embeddings and the number of layers for the last one, after the final norm. `how` is the
    mean over the turn's tokens, or the state of its last one. `context` is what the model reads before the turn:
    nothing, the previous turn of the dialogue, or all turns before it.
    """

    layer: int
    how: Literal["mean", "last"]
    context: Literal["none", "previous", "dialogue"]
