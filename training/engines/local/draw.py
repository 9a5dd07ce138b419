"""Draws the next token of each row: temperature, top-k, top-p and choices per row, one uniform number per token.

A row's result depends only on its logits and its uniform number, not on the other rows of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Settings(NamedTuple):
    """Sampling settings of B rows: temperature (0 = greedy), top_k (0 = off), top_p (1 = off), each [B]."""

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor


class Draw(NamedTuple):
    """Tokens [B], their log-probability under softmax(logits / T) [B], and the mass that top-k and top-p cut [B]."""

    tokens: Tensor
    logprobs: Tensor
    discarded: Tensor


def restrict(logits: Tensor, allowed: Sequence[Sequence[int] | None]) -> Tensor:
    """Return `logits` [B, V] with -inf outside the tokens that each row allows; None = all of them."""
    restricted = logits.clone()
    for row, tokens in enumerate(allowed):
        if tokens is not None:
            restricted[row] = -torch.inf
            restricted[row, list(tokens)] = logits[row, list(tokens)]
    return restricted


def draw(logits: Tensor, settings: Settings, uniform: Tensor) -> Draw:
    """Sample one token per row from `logits` [B, V] with `uniform` [B] in [0, 1), by inverse transform sampling.

    Log-probabilities are over all tokens whose logits are finite, before top-k and top-p; a greedy token is certain,
    so its is 0.
    """
    greedy = settings.temperature <= 0
    scaled = logits.float() / torch.where(greedy, 1.0, settings.temperature).unsqueeze(1)
    logprobs = scaled.log_softmax(-1)
    probs = logprobs.double().exp()
    remaining = _filtered(probs, settings)
    cumulated = remaining.cumsum(-1)
    total = cumulated[:, -1:]
    place = torch.minimum(uniform.unsqueeze(1) * total, total * (1 - 1e-15))
    tokens = torch.searchsorted(cumulated, place, right=True).squeeze(1).clamp(max=logits.shape[1] - 1)
    tokens = torch.where(greedy, logits.argmax(-1), tokens)
    discarded = torch.where(greedy, 0.0, (1 - total.squeeze(1)).clamp(min=0.0))
    if remaining is probs:
        discarded = torch.zeros_like(discarded)
    chosen = logprobs.gather(1, tokens.unsqueeze(1)).squeeze(1)
    # multiplied by 0, not set to 0, so that NaN logits stay visible
    return Draw(tokens, torch.where(greedy, chosen * 0, chosen), discarded)


def _filtered(probs: Tensor, settings: Settings) -> Tensor:
    """Return `probs` [B, V] with the tokens outside top-k, then outside top-p of what is left, set to 0."""
    if not (bool((settings.top_k > 0).any()) or bool((settings.top_p < 1).any())):
        return probs
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(probs.shape[1], device=probs.device)
    limit = torch.where(settings.top_k > 0, settings.top_k, probs.shape[1]).unsqueeze(1)
    within = torch.where(rank < limit, ordered, 0.0)
    before = within.cumsum(-1) - within
    keep = (before < settings.top_p.unsqueeze(1) * within.sum(-1, keepdim=True)) & (rank < limit)
    keep[:, 0] = True
    return torch.zeros_like(probs).scatter(1, order, torch.where(keep, ordered, 0.0))
