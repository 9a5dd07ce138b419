"""Advantage estimators over plain numbers, shared by the methods.

Every function takes any sequence of floats and returns float64 arrays; sequences of unequal length raise `ValueError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np

if TYPE_CHECKING:
    from training.records import Floats

Numbers = Sequence[float]


def gae(rewards: Numbers, values: Numbers, gamma: float, lam: float) -> Floats:
    """Return the generalised advantage estimates A_k = Σ_l (γλ)^l δ_{k+l} with δ_k = r_k + γ V_{k+1} − V_k.

    `rewards` has one entry a step; `values` too, and the value after the last step is then 0. One value more than
    steps is taken as the value after the last step (Schulman et al., 2016, eq. 16).
    """
    r = np.asarray(rewards, dtype=np.float64).reshape(-1)
    v = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(v) == len(r):
        v = np.append(v, 0.0)
    if len(v) != len(r) + 1:
        raise ValueError(f"{len(r)} rewards need {len(r)} values, not {len(v)}")
    deltas = r + gamma * v[1:] - v[:-1]
    advantages = np.zeros_like(r)
    running = 0.0
    for k in range(len(r) - 1, -1, -1):
        running = deltas[k] + gamma * lam * running
        advantages[k] = running
    return advantages


def hierarchical_gae(
    final_reward: float | Numbers,
    turn_values: Numbers,
    token_values: Sequence[Numbers],
    gamma_turn: float,
    lam_turn: float,
    gamma: float,
    lam: float,
    passed: Sequence[bool] | None = None,
) -> tuple[Floats, list[Floats]]:
    """Return (turn advantages, token advantages of each turn), the paper's two-level estimator (OMAR, §3.2 and §4.3).

    Turn level: a turn is one step; `final_reward` (a float) is paid at the last turn, or gives one reward per turn.
    Token level: the turn's advantage is a pseudo-reward on its last token; a turn with `passed` False has
    pseudo-reward 0. The returned turn advantages are those of the recursion, before that filter. Values are read
    before their turn or token; the value after the last token of a turn is 0 at the token level.
    """
    turns = len(turn_values)
    if len(token_values) != turns or (passed is not None and len(passed) != turns):
        raise ValueError(f"turn_values has {turns} turns, token_values {len(token_values)}; passed must agree")
    turn_advantages = gae(turn_rewards(final_reward, turns).tolist(), turn_values, gamma_turn, lam_turn)
    keep = np.ones(turns) if passed is None else np.asarray(passed, dtype=np.float64)
    pseudo = np.where(keep > 0, turn_advantages, 0.0)
    return turn_advantages, [
        token_gae(float(reward), values, gamma, lam) for reward, values in zip(pseudo, token_values, strict=True)
    ]


def turn_rewards(final_reward: float | Numbers, turns: int) -> Floats:
    """Return one reward per turn: a float is paid at the last turn."""
    if isinstance(final_reward, SupportsFloat) and np.ndim(final_reward) == 0:
        rewards = np.zeros(turns)
        if turns:
            rewards[-1] = float(final_reward)
        return rewards
    rewards = np.asarray(final_reward, dtype=np.float64).reshape(-1)
    if len(rewards) != turns:
        raise ValueError(f"{turns} turns need {turns} rewards, not {len(rewards)}")
    return rewards


def token_gae(
    pseudo_reward: float, values: Numbers, gamma: float, lam: float, token_rewards: Numbers | None = None
) -> Floats:
    """Return the token advantages of one turn whose credit in all is `pseudo_reward`.

    `token_rewards`, if given, are the part of it that is paid at the tokens themselves: the last token receives what
    remains, so that at γ = 1 the turn's rewards add up to `pseudo_reward`.
    """
    rewards = np.zeros(len(values)) if token_rewards is None else np.array(token_rewards, dtype=np.float64)
    if len(rewards):
        rewards[-1] += pseudo_reward - rewards.sum()
    return gae(rewards.tolist(), values, gamma, lam)


def whitened(advantages: Sequence[Floats]) -> list[Floats]:
    """Return the arrays shifted and scaled to mean 0 and variance 1 over all their entries together.

    Equal entries (or a single one) only lose their mean.
    """
    if not advantages:
        return []
    together = np.concatenate(advantages)
    if not together.size:
        return list(advantages)
    spread = float(together.std())
    scale = spread if spread > 1e-8 else 1.0
    return [(array - together.mean()) / scale for array in advantages]
