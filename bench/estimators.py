"""The expected policy gradient of MARS's forms and of the loss's averages, by enumeration, against the true one.

The game: two players take turns, at most `DEPTH` in all; every turn has two actions that continue the game and, where
the policy decides when the game ends, a third that stops it. The rewards of both players, after every action or after
the last one alone, are drawn once per game. The policy is a table of logits. A group is two or three plays of one game.
Every group is enumerated with its probability, credit is the method's own (`training.methods.mars`), and weights are
the loss's own (`training.learn.losses.averaging`). A form is unbiased if its expected gradient is a positive multiple
of the true one: `ratio` is that multiple, `bias` the norm of the orthogonal component divided by that of the parallel
one. `noise` is the variance of the gradient divided by the square of its expectation. The running mean of `role_ema`,
which comes from earlier games, is here each player's true mean return.
"""

from __future__ import annotations

import itertools
import time
from argparse import Namespace
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.forms import FORMS
from training.learn.losses import averaging
from training.methods.mars import MarsConfig
from training.records import Episode, Move, Scenario, ScoredEpisode, Trace, Turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.methods.mars import Mars

    Vector = NDArray[np.float64]

DEPTH = 4
STOP = 2
WEIGHTS = ("sum", "token_mean", "turn_mean", "player_mean")
"""How turns are averaged: `sum` gives each the same weight, whatever the others' number; the rest are the loss's."""

KINDS = {"fixed_length": (False, False), "policy_ends": (True, False), "one_reward": (True, True)}
"""Whether the policy ends the games of a kind, and whether these pay at the end alone."""

Path = tuple[int, ...]
"""The actions of one game, in order; the players alternate."""


@dataclass(frozen=True)
class World:
    """One random game with a random policy.

    `ends`: whether the policy decides when the game ends; `last`: whether the last action alone is paid for.
    """

    seed: int
    ends: bool
    last: bool = False

    @cached_property
    def paths(self) -> list[Path]:
        """Every way to play."""
        return [way for way in self._ways(()) if way]

    def _ways(self, before: Path) -> list[Path]:
        if len(before) == DEPTH or STOP in before:
            return [before]
        return [way for action in range(self.actions(before)) for way in self._ways((*before, action))]

    def actions(self, before: Path) -> int:
        """Return the number of actions after `before`; the last of three stops the game."""
        return 3 if self.ends and len(before) < DEPTH - 1 else 2

    @cached_property
    def policy(self) -> dict[Path, Vector]:
        """The probability of each action after each prefix."""
        random = np.random.default_rng((self.seed, 0))
        prefixes = sorted({way[:k] for way in self.paths for k in range(len(way))})
        return {prefix: _softmax(random.normal(size=self.actions(prefix))) for prefix in prefixes}

    @cached_property
    def rewards(self) -> dict[Path, Vector]:
        """What both players receive after each prefix."""
        random = np.random.default_rng((self.seed, 1))
        games = set(self.paths)
        return {
            prefix: random.normal(size=2) * (prefix in games or not self.last)
            for prefix in sorted({way[:k] for way in self.paths for k in range(1, len(way) + 1)})
        }

    @cached_property
    def places(self) -> dict[Path, slice]:
        """Where the logits of each prefix stand in a gradient."""
        ends = np.cumsum([len(self.policy[prefix]) for prefix in self.policy])
        return {
            prefix: slice(int(end) - len(self.policy[prefix]), int(end))
            for prefix, end in zip(self.policy, ends, strict=True)
        }

    @property
    def size(self) -> int:
        """The number of logits."""
        return sum(map(len, self.policy.values()))

    def probability(self, way: Path) -> float:
        """Return how likely a way to play is."""
        return float(np.prod([self.policy[way[:k]][action] for k, action in enumerate(way)]))

    def score(self, way: Path, turn: int) -> Vector:
        """Return ∇ log π of one action, as a vector over all logits."""
        prefix = way[:turn]
        gradient = np.zeros(self.size)
        gradient[self.places[prefix]] = np.eye(len(self.policy[prefix]))[way[turn]] - self.policy[prefix]
        return gradient

    def paid(self, way: Path) -> Vector:
        """Return the rewards by turn and player: what each step pays both."""
        return np.array([self.rewards[way[: k + 1]] for k in range(len(way))])

    def true_gradient(self) -> Vector:
        """Return the gradient of every player's expected return with respect to its own logits."""
        total = np.zeros(self.size)
        for way in self.paths:
            returns = self.paid(way).sum(axis=0)
            for turn in range(len(way)):
                total += self.probability(way) * returns[turn % 2] * self.score(way, turn)
        return total

    def mean_returns(self) -> Vector:
        """Return each player's expected return."""
        means: Vector = np.sum([self.probability(way) * self.paid(way).sum(axis=0) for way in self.paths], axis=0)
        return means

    def scored(self, way: Path) -> ScoredEpisode:
        """Return the game as a scored episode with one token a turn.

        A player's reward counts for its latest turn; what comes before its first one counts for that.
        """
        rewards = np.zeros(len(way))
        for k, paid in enumerate(self.paid(way)):
            for player in range(min(2, len(way))):
                latest = k if k % 2 == player else k - 1
                rewards[max(latest, player)] += paid[player]
        traces = tuple(_trace(player, len(way)) for player in range(min(2, len(way))))
        turns = tuple(Turn(seat=k % 2, reply="", move=Move(action="go"), passed=True) for k in range(len(way)))
        scenario = Scenario(id="world", game="world", seats=("A", "B"))
        episode = Episode(scenario=scenario, turns=turns, traces=traces)
        return ScoredEpisode(episode, {0: 0.0, 1: 0.0}, rewards.tolist(), [True] * len(way))


def _softmax(logits: Vector) -> Vector:
    weights = np.exp(logits - logits.max())
    chances: Vector = weights / weights.sum()
    return chances


def _trace(player: int, turns: int) -> Trace:
    """Return a trace of two tokens per turn of the player: what it reads, what it samples."""
    places = [k for k in range(turns) if k % 2 == player]
    mask = (0, 1) * len(places)
    turn = tuple(index for k in places for index in (-1, k))
    return Trace(seat=player, tokens=(0,) * len(mask), mask=mask, turn=turn, logprobs=(0.0,) * len(mask))


def compare(world: World, form: str, size: int) -> dict[str, dict[str, float]]:
    """Return ratio, cosine, bias and noise of one form of credit by average, over every group of `size` games."""
    config, truth = MarsConfig(**FORMS[form]), world.true_gradient()
    means = {f"world/{player}": mean for player, mean in enumerate(world.mean_returns().tolist())}
    scored = {way: world.scored(way) for way in world.paths}
    expected, square = {how: np.zeros_like(truth) for how in WEIGHTS}, dict.fromkeys(WEIGHTS, 0.0)
    for group in itertools.product(world.paths, repeat=size):
        method = config.build()
        method.load_state_dict({"means": means})
        chance = float(np.prod([world.probability(way) for way in group]))
        for how, gradient in gradients(world, group, [scored[way] for way in group], method).items():
            expected[how] += chance * gradient
            square[how] += chance * float(gradient @ gradient)
    return {how: _numbers(expected[how], square[how], truth) for how in WEIGHTS}


def gradients(world: World, group: tuple[Path, ...], scored: list[ScoredEpisode], method: Mars) -> dict[str, Vector]:
    """Return, by average, the gradient that the method's credit gives for one group."""
    credit = method.credit(scored)
    traces = [(g, trace) for g, each in enumerate(scored) for trace in each.episode.traces]
    advantages = [row.turn_advantages if row else {} for each in credit for row in each.traces]
    result = {}
    for how in WEIGHTS:
        total = np.zeros(world.size)
        for (g, trace), row, weight in zip(traces, advantages, _weights(traces, len(group), how), strict=True):
            for turn, advantage in row.items():
                total += weight[trace.turn.index(turn)] * advantage * world.score(group[g], turn)
        result[how] = total
    return result


def _weights(traces: list[tuple[int, Trace]], games: int, how: str) -> list[Vector]:
    """Return each trace's weights by token."""
    masks = [np.asarray(trace.mask, dtype=bool) for _, trace in traces]
    if how == "sum":
        return [mask / games for mask in masks]
    turns = [trace.turn for _, trace in traces]
    seats, players = [(g, trace.seat) for g, trace in traces], [trace.seat for _, trace in traces]
    return averaging(masks, turns, seats, how, players)  # type: ignore[arg-type]


def _numbers(expected: Vector, square: float, truth: Vector) -> dict[str, float]:
    """Return how an expected gradient compares with the true one; `square` is the expectation of its square."""
    ratio, length = float(expected @ truth / (truth @ truth)), float(expected @ expected)
    return {
        "ratio": ratio,
        "cosine": float(expected @ truth / np.sqrt(length * (truth @ truth))),
        "bias": float(np.linalg.norm(expected - ratio * truth) / np.linalg.norm(ratio * truth)),
        "noise": (square - length) / length,
    }


def main(arguments: Namespace) -> dict[str, Any]:
    """Return every form under every average: games of fixed length, those that the policy ends, with one reward too."""
    began = time.monotonic()
    games: dict[str, Any] = {}
    for name, (ends, last) in KINDS.items():
        worlds = [World(seed, ends, last) for seed in range(arguments.seed, arguments.seed + arguments.worlds)]
        games[name] = {form: _over([compare(world, form, arguments.group) for world in worlds]) for form in FORMS}
    return {
        "worlds": arguments.worlds,
        "seed": arguments.seed,
        "group": arguments.group,
        "games": games,
        "seconds": round(time.monotonic() - began, 1),
    }


def _over(worlds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """Return, by average, the mean of each number over the worlds, and bias and noise in each."""
    return {
        how: {name: fmean(world[how][name] for world in worlds) for name in worlds[0][how]}
        | {"worst_bias": max(world[how]["bias"] for world in worlds)}
        | {f"{name}_by_world": [world[how][name] for world in worlds] for name in ("bias", "noise")}
        for how in WEIGHTS
    }


def show(result: dict[str, Any]) -> str:
    """Return a table per kind of game: the bias and the noise of each form under each average."""
    lines = []
    for game, forms in result["games"].items():
        lines += [game, f"{'':<18}" + "".join(f"{how:>24}" for how in WEIGHTS)]
        lines += [
            f"{form:<18}" + "".join(f"{row[how]['bias']:>12.3f}, {row[how]['noise']:>6.1f}    " for how in WEIGHTS)
            for form, row in forms.items()
        ]
    return "\n".join(lines)
