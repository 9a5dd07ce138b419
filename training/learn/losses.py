"""The terms of the one loss, per token, and the per-token weights that average them.

All functions take and return tensors of one shape; nothing is averaged here but by the weights of `averaging`. The
policy is softmax(logits / temperature), here and in the engine, over all tokens or over those that were allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

    from training.records import Bools, Floats


Aggregate = Literal["token_mean", "turn_mean", "player_mean"]


def ppo_clip(
    logp: Tensor, old_logp: Tensor, advantage: Tensor, clip: float, dual_clip: float | None = None
) -> tuple[Tensor, Tensor]:
    """Return (loss, whether the clip holds) of PPO's clipped objective (Schulman et al., 2017, eq. 7).

    With `dual_clip` c the loss of an action with negative advantage is at most c·|A| (Ye et al., 2020, eq. 5).
    """
    ratio = (logp - old_logp).exp()
    plain, clipped = ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage
    objective = torch.minimum(plain, clipped)
    clipping = clipped < plain
    if dual_clip is not None:
        bound = torch.where(advantage < 0, dual_clip * advantage, torch.full_like(advantage, -torch.inf))
        clipping = clipping | (bound > objective)
        objective = torch.maximum(objective, bound)
    return -objective, clipping


def importance_weight(old_logp: Tensor, engine_logp: Tensor, cap: float, outlier: float = 0.0) -> Tensor:
    """Return min(π_prox / π_behavior, cap), without gradient: what corrects for the policy that sampled.

    With an `outlier` o > 0 it is 0 where the ratio is above o or below 1 / o.
    """
    ratio = (old_logp - engine_logp).exp().detach()
    weight = ratio.clamp(max=cap)
    return weight.masked_fill((ratio > outlier) | (ratio * outlier < 1), 0.0) if outlier else weight


def reinforce(logp: Tensor, advantage: Tensor) -> Tensor:
    """Return −A log π."""
    return -advantage * logp


def nll(logp: Tensor, weight: Tensor) -> Tensor:
    """Return −w log π of target tokens."""
    return -weight * logp


def value(prediction: Tensor, target: Tensor) -> Tensor:
    """Return half the squared error."""
    return 0.5 * (prediction - target) ** 2


def kl(kind: Literal["k2", "k3"], logp: Tensor, ref_logp: Tensor) -> Tensor:
    """Return an estimate of a divergence from the reference, from tokens sampled by the policy.

    As a loss k2 has the gradient of KL(π‖ref), k3 that of KL(ref‖π). k1 (logp − ref) as a loss has the expected
    gradient 0, so it is offered only as a reward (Schulman, "Approximating KL divergence", 2020).
    """
    gap = ref_logp - logp
    return 0.5 * gap**2 if kind == "k2" else gap.exp() - 1 - gap


def averaging(
    masks: Sequence[Bools],
    turns: Sequence[Sequence[int]],
    seats: Sequence[object],
    how: Aggregate,
    players: Sequence[object] = (),
) -> list[Floats]:
    """Return per-token weights, one array per trace, that add up to 1 over all masked tokens.

    `token_mean`: every masked token weighs the same. `turn_mean`: the mean over a turn's tokens, then over a
    trajectory's turns, then over trajectories; traces with equal `seats` entry (branches) are one trajectory, and
    tokens outside any turn (-1) form a turn of their own. `player_mean`: the same among the trajectories with equal
    `players` entry, then over players.
    """
    if how == "token_mean":
        total = max(1, sum(int(mask.sum()) for mask in masks))
        return [mask.astype(np.float64) / total for mask in masks]
    tokens: Counter[tuple[object, int]] = Counter()
    for mask, turn, seat in zip(masks, turns, seats, strict=True):
        tokens.update((seat, t) for t, counts in zip(turn, mask, strict=True) if counts)
    turns_of = Counter(seat for seat, _ in tokens)
    player_of = dict(zip(seats, players, strict=True)) if how == "player_mean" else {}
    peers = Counter(player_of.get(seat) for seat in turns_of)
    weights = []
    for mask, turn, seat in zip(masks, turns, seats, strict=True):
        row = np.zeros(len(mask))
        for at in np.flatnonzero(mask):
            row[at] = 1.0 / (tokens[seat, turn[at]] * turns_of[seat] * peers[player_of.get(seat)] * len(peers))
        weights.append(row)
    return weights
