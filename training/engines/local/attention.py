"""Causal attention for bfloat16 on CPUs, a block of queries at a time; everything else goes to PyTorch's SDPA.

A mask may be that of the last queries alone: those before them attend causally to the keys before them, without a mask,
at the cost that they have by themselves.

PyTorch's CPU kernel multiplies bfloat16 at the speed of float32 where the CPU has no AMX, and then takes about half of
a forward pass at 700 tokens. Batched products of bfloat16 do use AVX-512; in blocks they skip the keys that lie ahead
of the queries, and the scores of a block stay in the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

if TYPE_CHECKING:
    from torch import Tensor, nn

BLOCKED = "sdpa_or_blocked"
"""What models name as their `attn_implementation`."""
QUERIES = 128
"""Queries of a block."""


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Return what is attended to, (B, L, heads, D).

    Queries are (B, heads, L, D), keys and values (B, groups, L', D); the other arguments are those of Transformers,
    but a mask (B, 1, T, L') with T < L = L' is that of the last T queries.
    """
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
