"""The exact noise-to-signal ratio of the toy's policy gradient at the start of training, by form of credit.

The policy is uniform with separate logits for every position. Only the deciding token matters, so there are two kinds
of episodes. The critic is blank (0) or converged: its values are the means of its own targets given the tokens so far.
Signal is the norm of the expected gradient of one episode, noise the gradient's standard deviation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from training.records import Episode, Move, Scenario, ScoredEpisode, Seat, Trace, Turn

if TYPE_CHECKING:
    from bench.toy import Toy
    from training.methods import Method
    from training.records import Floats

PASSES = 600
"""Steps of the critic, each half of the way to its targets; it settles within 100."""


def noise_to_signal(method: Method, toy: Toy, decides: int, *, converged: bool) -> float:
    """Return the ratio; `decides` is the position of the deciding token in the trace."""
    chance = 1 / toy.actions
    values = {head: np.zeros((2, len(toy.pattern))) for head in method.needs.critic}
    for _ in range(PASSES if converged else 0):
        _towards_targets(method, toy, values, decides)
    wrong, right = (_advantages(method, toy, values, outcome) for outcome in (0, 1))
    sampled = np.array(toy.pattern) >= 0
    squares = chance * right**2 + (1 - chance) * wrong**2
    spread = 1 - chance  # squared norm of (one-hot - uniform)
    signal = chance * np.sqrt(spread) * abs(right[decides] - wrong[decides])
    return float(np.sqrt(spread * squares[sampled].sum() - signal**2) / signal)


def _towards_targets(method: Method, toy: Toy, values: dict[str, Floats], decides: int) -> None:
    both = [method.credit([_episode(toy, values, outcome)])[0].traces[0] for outcome in (0, 1)]
    chance = 1 / toy.actions
    for head, known in values.items():
        targets = np.stack([credit.value_targets[head] for credit in both if credit])
        mask = next(credit.value_mask[head] for credit in both if credit)
        before = slice(0, decides)  # the outcome is not known yet
        targets[:, before] = (1 - chance) * targets[0, before] + chance * targets[1, before]
        values[head] = known + np.where(mask, targets - known, 0) / 2


def _advantages(method: Method, toy: Toy, values: dict[str, Floats], outcome: int) -> Floats:
    credit = method.credit([_episode(toy, values, outcome)])[0].traces[0]
    assert credit is not None, "the toy has one learning trace per episode"
    assert credit.ppo is not None, "every form of the miniature has advantages"
    return credit.ppo


def _episode(toy: Toy, values: dict[str, Floats], outcome: int) -> ScoredEpisode:
    length = len(toy.pattern)
    trace = Trace(
        seat=0,
        tokens=(0,) * length,
        mask=tuple(int(turn >= 0) for turn in toy.pattern),
        turn=toy.pattern,
        logprobs=(0.0,) * length,
    )
    turns = (Turn(seat=0, reply="", move=Move(action="say"), passed=True),) * toy.turns
    returns: dict[Seat, float] = {0: float(outcome)}
    scenario = Scenario(id="toy", game="toy", seats=("learner",))
    return ScoredEpisode(
        episode=Episode(scenario=scenario, turns=turns, traces=(trace,), returns={**returns}),
        returns=returns,
        turn_rewards=(0.0,) * toy.turns,
        passed=(True,) * toy.turns,
        logprobs=[np.zeros(length)],
        values={head: [known[outcome]] for head, known in values.items()},
    )
