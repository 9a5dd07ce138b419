"""From hidden states to log-probabilities of tokens, a chunk of positions at a time: the only place that sees logits.

Two ways with one result. Where the output layer is frozen, the gradient at the hidden state is computed in the forward
pass and nothing of a chunk's logits is kept; elsewhere each chunk is recomputed in the backward pass.

Where decoding was limited to some tokens, both renormalise over these: the other logits of the chunk are overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from torch import Tensor

    from training.learn.choices import Choices


CLOSED = -1e30
"""The logit of a token that was not allowed. It is finite, so that 0 · log 0 is 0 in an entropy."""


def logprobs(
    head: nn.Module,
    hidden: Tensor,
    targets: Tensor,
    *,
    temperature: float,
    chunk: int,
    dtype: torch.dtype | None = None,
    entropy_grad: bool = False,
    choices: Choices | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (log-probability of `targets`, entropy), both (N,) in float32, under softmax(head(hidden) / temperature).

    `hidden` is (N, H), read before the targets. `dtype` is what the output layer computes in (None = its own). The
    entropy carries a gradient only with `entropy_grad`. At the rows of `choices` the softmax is over their ids alone,
    among which the target must be; with a single id the log-probability, the entropy and the gradient are 0.
    """
    if not len(targets):
        return hidden.new_zeros(0, dtype=torch.float32), hidden.new_zeros(0, dtype=torch.float32)
    starts = range(0, len(targets), chunk)
    limits = [None] * len(starts) if choices is None else choices.pieces(len(targets), chunk)
    if torch.is_grad_enabled() and not entropy_grad and _frozen(head):
        logp, entropy = _Frozen.apply(hidden, head.weight, targets, temperature, chunk, dtype, limits)
        return logp, entropy
    parts = []
    for start, limit in zip(starts, limits, strict=True):
        piece = slice(start, start + chunk)
        arguments = (head, hidden[piece], targets[piece], temperature, dtype, entropy_grad, limit)
        if torch.is_grad_enabled():
            parts.append(checkpoint(_chunk, *arguments, use_reentrant=False, preserve_rng_state=False))
        else:
            parts.append(_chunk(*arguments))
    logp, entropy = (torch.cat(column) for column in zip(*parts, strict=True))
    return logp, entropy


def _frozen(head: nn.Module) -> bool:
    plain = type(head) is nn.Linear and getattr(head, "bias", None) is None
    return plain and not any(parameter.requires_grad for parameter in head.parameters())


def _logits(head: nn.Module, hidden: Tensor, temperature: float, dtype: torch.dtype | None) -> Tensor:
    kind = hidden.device.type
    with torch.autocast(kind, dtype or torch.bfloat16, enabled=dtype is not None):
        logits: Tensor = head(hidden if dtype is not None else hidden.to(next(head.parameters()).dtype))
    logits = logits.float()
    return logits if temperature == 1 else logits / temperature


def _close(logits: Tensor, limit: Choices | None) -> Tensor:
    """Overwrite the logits (C, V) of tokens that were not allowed; return them."""
    if limit is None:
        return logits
    closed = torch.zeros_like(logits, dtype=torch.bool)
    closed[limit.rows] = True
    closed[limit.rows[:, None], limit.ids] = False
    return logits.masked_fill_(closed, CLOSED)


def _chunk(
    head: nn.Module,
    hidden: Tensor,
    targets: Tensor,
    temperature: float,
    dtype: torch.dtype | None,
    entropy_grad: bool,
    limit: Choices | None,
) -> tuple[Tensor, Tensor]:
    table = torch.log_softmax(_close(_logits(head, hidden, temperature, dtype), limit), -1)
    logp = table.gather(-1, targets[:, None]).squeeze(-1)
    with torch.set_grad_enabled(entropy_grad and torch.is_grad_enabled()):
        entropy = -torch.linalg.vecdot(table.exp(), table)
    return logp, entropy


class _Frozen(torch.autograd.Function):
    """∂ log p(y) / ∂h = Σ_v ([v = y] − p_v) W_v / temperature, (N, H): all that the backward pass needs.

    A token that was not allowed has p_v = 0.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        temperature: float,
        chunk: int,
        dtype: torch.dtype | None,
        limits: Sequence[Choices | None],
    ) -> tuple[Tensor, Tensor]:
        weight = weight.to(dtype or weight.dtype)
        slope = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
        logp, entropy = (torch.empty(len(targets), device=hidden.device) for _ in range(2))
        for start, limit in zip(range(0, len(targets), chunk), limits, strict=True):
            piece = slice(start, start + chunk)
            table = F.linear(hidden[piece].to(weight.dtype), weight).float()
            table = torch.log_softmax(_close(table if temperature == 1 else table.div_(temperature), limit), -1)
            logp[piece] = table.gather(-1, targets[piece, None]).squeeze(-1)
            chances = table.exp()
            entropy[piece] = -torch.linalg.vecdot(chances, table)
            # 1 − p_y in float32: in bfloat16 nothing of it would be left where the target is nearly certain
            errors = chances.neg_().scatter_(-1, targets[piece, None], -torch.expm1(logp[piece, None]))
            slope[piece] = (errors.to(weight.dtype) @ weight).float().div_(temperature).to(slope.dtype)
        ctx.save_for_backward(slope)
        ctx.mark_non_differentiable(entropy)
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return (gradients[0][:, None] * slope).to(slope.dtype), None, None, None, None, None, None
