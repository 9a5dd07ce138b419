"""Advantage estimators over plain numbers, shared by the methods.

Every function takes any sequence of floats and returns float64 arrays; sequences of unequal length raise `ValueError`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from training.records import Floats

Numbers: TypeAlias = Sequence[float] | NDArray[np.float64]
Filter = Literal["off", "zero", "min"]
"""What a failing turn may earn: as any other turn, exactly 0, or nothing above 0."""


class Whitening(NamedTuple):
    """A shift and a scale for advantages; the default leaves them as they are."""

    mean: float = 0.0
    scale: float = 1.0

    def __call__(self, advantages: Floats) -> Floats:
        """Return the advantages minus `mean`, divided by `scale`."""
        whitened: Floats = (advantages - self.mean) / self.scale
        return whitened


UNCHANGED = Whitening()


def whitening(advantages: Sequence[Floats]) -> Whitening:
    """Return what brings all entries of the arrays together to mean 0 and variance 1.

    Equal entries (or a single one) only lose their mean.
    """
    entries = np.concatenate(advantages) if advantages else np.zeros(0)
    if not entries.size:
        return UNCHANGED
    deviation = float(entries.std())
    return Whitening(float(entries.mean()), deviation if deviation > 1e-8 else 1.0)


def gae(rewards: Numbers, values: Numbers, gamma: float | Numbers, lam: float) -> Floats:
    """Return the generalised advantage estimates A_k = Σ_l (γλ)^l δ_{k+l} with δ_k = r_k + γ V_{k+1} − V_k.

    `rewards` has one entry per step; `values` too, and the value after the last step is then 0. One value more than
    steps is taken as the value after the last step (Schulman et al., 2016, eq. 16). `gamma` may be one discount per
    step, from that step to the next: A_k = δ_k + γ_k λ A_{k+1} with δ_k = r_k + γ_k V_{k+1} − V_k.
    """
    r = np.asarray(rewards, dtype=np.float64).reshape(-1)
    v = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(v) == len(r):
        v = np.append(v, 0.0)
    if len(v) != len(r) + 1:
        raise ValueError(f"{len(r)} rewards need {len(r)} values, not {len(v)}")
    discounts = np.full(len(r), gamma, dtype=np.float64) if np.ndim(gamma) == 0 else np.asarray(gamma, dtype=np.float64)
    if len(discounts) != len(r):
        raise ValueError(f"{len(r)} rewards need {len(r)} discounts, not {len(discounts)}")
    advantages: list[float] = []
    running = 0.0
    deltas = (r + discounts * v[1:] - v[:-1]).tolist()  # plain floats: a loop over array entries is slow
    for delta, decay in zip(reversed(deltas), reversed((discounts * lam).tolist()), strict=True):
        running = delta + decay * running
        advantages.append(running)
    return np.array(advantages[::-1], dtype=np.float64)


def hierarchical_gae(  # noqa: PLR0913  # the paper's symbols, by position
    final_reward: float | Numbers,
    turn_values: Numbers,
    token_values: Sequence[Numbers],
    gamma_turn: float,
    lam_turn: float,
    gamma: float,
    lam: float,
    passed: Sequence[bool] | None = None,
    *,
    filter: Filter = "zero",
    whitening: Whitening = UNCHANGED,
    token_rewards: Sequence[Numbers] | None = None,
) -> tuple[Floats, list[Floats]]:
    """Return (turn advantages, token advantages of each turn), the paper's two-level estimator (OMAR, §3.2 and §4.3).

    Turn level: a turn is one step; `final_reward` (a float) is paid at the last turn, or gives one reward per turn.
    Token level: the turn's advantage, after `whitening` and `filter`, is a pseudo-reward on its last token. Values are
    read before their turn or token; the value after the last token of a turn is 0 at the token level. The returned turn
    advantages are those of the recursion, before whitening and filter.

    `filter` decides about the turns with `passed` False: "zero" (the paper) sets their pseudo-reward to 0, "min" to at
    most 0 and cuts their token advantages at 0 from above, "off" treats them as any other turn. `token_rewards` has one
    sequence per turn: the part of the turn's reward that was paid at its tokens (see `token_gae`).
    """
    turns = len(turn_values)
    if len(token_values) != turns or (passed is not None and len(passed) != turns):
        raise ValueError(f"turn_values has {turns} turns, token_values {len(token_values)}; passed must agree")
    if token_rewards is not None and len(token_rewards) != turns:
        raise ValueError(f"{turns} turns need {turns} sequences of token rewards, not {len(token_rewards)}")
    turn_advantages = gae(turn_rewards(final_reward, turns).tolist(), turn_values, gamma_turn, lam_turn)
    verdicts = [True] * turns if passed is None else [bool(verdict) for verdict in passed]
    pseudo = filtered(turn_advantages, verdicts, filter, whitening)
    token_advantages = []
    for k, values in enumerate(token_values):
        paid = None if token_rewards is None else token_rewards[k]
        credit = token_gae(float(pseudo[k]), values, gamma, lam, paid)
        token_advantages.append(np.minimum(credit, 0.0) if filter == "min" and not verdicts[k] else credit)
    return turn_advantages, token_advantages


def filtered(
    turn_advantages: Floats, passed: Sequence[bool], filter: Filter, whitening: Whitening = UNCHANGED
) -> Floats:
    """Return what each turn hands down to its tokens: its advantage, whitened, then filtered where it did not pass."""
    whitened = whitening(turn_advantages)
    if filter == "off":
        return whitened
    limit = np.minimum(whitened, 0.0) if filter == "min" else np.zeros_like(whitened)
    return np.where(np.asarray(passed, dtype=bool), whitened, limit)


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


def belief_rewards(
    beliefs: Sequence[Sequence[float]],
    speakers: Sequence[int],
    imposters: Collection[int],
    listeners: Sequence[Collection[int]],
) -> list[float]:
    """Return one reward for each message of a discussion: what it changed in the listeners' beliefs in the truth.

    `beliefs[m][s]` is seat s's probability of the truth before the discussion (m = 0) and after message m;
    `speakers[m - 1]` spoke message m, and `listeners[m - 1]` are the seats that are summed over, the same at both
    probes. The sign is reversed for a speaker among the `imposters`, who is rewarded for doubt (Sarkar et al., 2025,
    "Training Language Models for Social Deduction with Multi-Agent Reinforcement Learning", speaking).
    """
    messages = len(speakers)
    if len(beliefs) != messages + 1 or len(listeners) != messages:
        raise ValueError(
            f"{messages} messages need beliefs at {messages + 1} probes and {messages} sets of listeners, "
            f"not {len(beliefs)} and {len(listeners)}"
        )
    if len({len(row) for row in beliefs}) > 1:
        raise ValueError(f"the probes have beliefs of {[len(row) for row in beliefs]} seats")
    seats = len(beliefs[0])
    if strangers := sorted({*speakers, *imposters, *(seat for heard in listeners for seat in heard)} - {*range(seats)}):
        raise ValueError(f"there are beliefs of {seats} seats, and no seat {strangers[0]}")
    rewards = []
    for speaker, heard, before, after in zip(speakers, listeners, beliefs[:-1], beliefs[1:], strict=True):
        change = sum(float(after[seat]) - float(before[seat]) for seat in heard)
        rewards.append(-change if speaker in imposters else change)
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


def returns_to_go(rewards: Numbers) -> Floats:
    """Return R_k = Σ_{j≥k} r_j: what is still to come from each turn on, undiscounted."""
    r = np.asarray(rewards, dtype=np.float64).reshape(-1)
    return r[::-1].cumsum()[::-1]


def reinforce_returns(rewards: Sequence[float], gamma: float) -> list[float]:
    """Return R_t / max_j |R_j| with R_t = Σ_{j≥t} γ^{j−t} r_j, one number per turn; zeros if every R_t is 0.

    The maximum is over the turns of this trajectory alone (EPO, section 3.2, "maximum absolute normalization"), so a
    positive factor on all rewards changes nothing.
    """
    returns: list[float] = []
    running = 0.0
    for reward in reversed(rewards):
        running = float(reward) + gamma * running
        returns.append(running)
    largest = max(map(abs, returns), default=0.0)
    return [value / largest if largest else 0.0 for value in reversed(returns)]


def centred(rows: Sequence[Numbers], players: Sequence[object], *, by_turn: bool = False) -> list[Floats]:
    """Return each trajectory's numbers, one per turn, minus their mean over all turns of its player.

    `by_turn`: minus their mean over the turns of the same index, instead.
    """
    if len(rows) != len(players):
        raise ValueError(f"{len(rows)} trajectories need {len(rows)} players, not {len(players)}")
    peers: dict[object, list[float]] = {}
    for player, row in zip(players, rows, strict=True):
        for k, value in enumerate(row):
            peers.setdefault((player, k if by_turn else None), []).append(float(value))
    means = {key: float(np.mean(values)) for key, values in peers.items()}
    return [
        np.array([value - means[player, k if by_turn else None] for k, value in enumerate(row)], dtype=np.float64)
        for player, row in zip(players, rows, strict=True)
    ]


def by_player(
    turn_rewards: Sequence[Numbers],
    players: Sequence[object],
    baseline: Literal["none", "player", "player_turn"] = "player",
) -> list[list[float]]:
    """Return the advantages of each trajectory's turns: return-to-go minus a mean over the same player's turns.

    `turn_rewards[i]` are the rewards of trajectory i's turns in order, `players[i]` its player. `player`: the mean over
    all returns-to-go of that player in the group. `player_turn`: over those at the same turn index. `none`: nothing is
    subtracted. There is no division by a deviation (MARS, §3.2).
    """
    to_go = [returns_to_go(rewards) for rewards in turn_rewards]
    rows = to_go if baseline == "none" else centred(to_go, players, by_turn=baseline == "player_turn")
    return [row.tolist() for row in rows]
