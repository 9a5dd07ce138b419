"""Causal attention for bfloat16 on CPUs, a block of queries at a time; everything else goes to PyTorch's SDPA.

A row may be packed: it consists of `Segments`, each of which attends to itself alone. They are given to the model as
its keyword argument `segments`, which Transformers passes on to this function. On GPUs a packed row in half precision
without masks is one call of PyTorch's attention for sequences of different lengths; else every segment is a call.

A mask may be that of the last queries alone: those before them attend causally to the keys before them, without a mask,
at the cost that they have by themselves.

PyTorch's CPU kernel multiplies bfloat16 at the speed of float32 where the CPU has no AMX, and then takes about half of
a forward pass at 700 tokens. Batched products of bfloat16 do use AVX-512; in blocks they skip the keys that lie ahead
of the queries, and the scores of a block stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

if TYPE_CHECKING:
    from torch import nn

BLOCKED = "sdpa_or_blocked"
"""What models name as their `attn_implementation`."""
QUERIES = 128
"""Queries of a block."""
HALF = (torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class Segments:
    """What a packed row (1, T) consists of: `lengths` of the segments, in order; they add up to T.

    `masks` are what the last queries of each segment see in it, (1, 1, queries, length), None where all of its tokens
    attend causally. `bounds` are the columns at which segments begin, and T: (N + 1,), int32.
    """

    lengths: tuple[int, ...]
    masks: tuple[Tensor | None, ...]
    bounds: Tensor

    @classmethod
    def of(cls, lengths: Sequence[int], masks: Sequence[Tensor | None] | None = None) -> Segments:
        """Return the segments of the given lengths; without masks all are causal."""
        bounds = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
        return cls(tuple(lengths), (None,) * len(lengths) if masks is None else tuple(masks), bounds)

    @property
    def causal(self) -> bool:
        """Whether no segment has a mask."""
        return all(mask is None for mask in self.masks)

    def to(self, device: torch.device) -> Segments:
        """Return the segments on `device`."""
        masks = tuple(None if mask is None else mask.to(device) for mask in self.masks)
        return Segments(self.lengths, masks, self.bounds.to(device))


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    segments: Segments | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Return what is attended to, (B, L, heads, D); B = 1 where the row consists of `segments`.

    Queries are (B, heads, L, D), keys and values (B, groups, L', D); the other arguments are those of Transformers,
    but a mask (B, 1, T, L') with T < L = L' is that of the last T queries.
    """
    if torch.is_autocast_enabled(query.device.type):  # queries and keys are in float32: they were rotated
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    if segments is not None:
        return _packed(module, query, key, value, attention_mask, dropout, scaling, segments, **options), None
    if attention_mask is not None and attention_mask.shape[2] < query.shape[2] == key.shape[2]:
        first = query.shape[2] - attention_mask.shape[2]
        head = (query[:, :, :first], key[:, :, :first], value[:, :, :first])
        before, _ = attention(module, *head, None, dropout, scaling, **options)
        after, _ = sdpa_attention_forward(
            module, query[:, :, first:], key, value, attention_mask, dropout, scaling, **options
        )
        return torch.cat((before, after), dim=1), None
    causal = attention_mask is None and query.shape[2] == key.shape[2] and getattr(module, "is_causal", True)
    if causal and not dropout and query.device.type == "cpu" and query.dtype == torch.bfloat16:
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        return blocked(query * scale, key, value).transpose(1, 2).contiguous(), None
    return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **options)


def _packed(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    scaling: float | None,
    segments: Segments,
    **options: Any,
) -> Tensor:
    """Return what the tokens of a packed row attend to, (1, T, heads, D).

    A mask of the whole row, which models with a sliding window have, holds within each segment that has none.
    """
    width, plain = query.shape[-1], segments.causal and attention_mask is None and not dropout
    if plain and query.device.type == "cuda" and query.dtype in HALF and width % 8 == 0 and width <= 256:
        return _varlen(query, key, value, segments, scaling)
    # the gradient of `split` is one concatenation; that of a slice would be a whole row for each segment
    parts = (tensor.split(segments.lengths, dim=2) for tensor in (query, key, value))
    masks, last = list(segments.masks), 0
    for number, length in enumerate(segments.lengths):
        first, last = last, last + length
        if masks[number] is None and attention_mask is not None:
            masks[number] = attention_mask[..., first:last, first:last]
    outputs = [
        attention(module, queries, keys, values, mask, dropout, scaling, **options)[0]
        for queries, keys, values, mask in zip(*parts, masks, strict=True)
    ]
    return torch.cat(outputs, dim=1)


def _varlen(query: Tensor, key: Tensor, value: Tensor, segments: Segments, scaling: float | None) -> Tensor:
    """Return `_packed` by one call for all segments; the arguments are in half precision."""
    queries, keys, values = (tensor.squeeze(0).transpose(0, 1) for tensor in (query, key, value))
    bounds, longest = segments.bounds, max(segments.lengths)
    output = varlen_attn(
        queries,
        keys,
        values,
        bounds,
        bounds,
        longest,
        longest,
        scale=scaling,
        window_size=(-1, 0),  # causal
        enable_gqa=query.shape[1] != key.shape[1],
    )
    assert isinstance(output, torch.Tensor), "only with `return_aux` there is more"
    return output.unsqueeze(0)


def blocked(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return softmax(QKᵀ)V under a causal mask, (B, heads, L, D); heads are a multiple of the groups of keys."""
    batch, heads, length, width = query.shape
    groups = batch * key.shape[1]
    queries = query.reshape(groups, -1, length, width)  # heads of a group lie side by side
    keys, values = key.reshape(groups, length, width).transpose(1, 2), value.reshape(groups, length, width)
    outputs = []
    for first in range(0, length, QUERIES):
        last = min(first + QUERIES, length)
        rows = queries[:, :, first:last].reshape(groups, -1, width)
        scores = torch.bmm(rows, keys[:, :, :last]).view(groups, -1, last - first, last)
        ahead = torch.ones(last - first, last - first, dtype=torch.bool).triu(1)
        scores[..., first:].masked_fill_(ahead, float("-inf"))
        shares = scores.softmax(-1).view(groups, -1, last)
        outputs.append(torch.bmm(shares, values[:, :last]).view(groups, -1, last - first, width))
    return torch.cat(outputs, dim=2).view(batch, heads, length, width)


AttentionInterface.register(BLOCKED, attention)
AttentionMaskInterface.register(BLOCKED, sdpa_mask)
