"""Does the hierarchy help? Five small tasks, `hierarchical` against `flat`, each at its best λ and learning rate.

A seat takes a few turns of many tokens. A turn succeeds if its deciding tokens are right, and the next reply tells the
seat whether it did. The reward at the end is the share of turns that succeeded, plus noise. The policy is a table of
logits per position and the critics are linear in their features, so that a run takes about a second. Credit is the
project's own (`training.methods.omar`), without discount and without filter in both forms.

Both forms are tuned on the same number of settings with seeds that the comparison does not use. `matched` is a third
arm: the hierarchy with flat's λ and learning rate and λ_turn = λ^(mean tokens per turn), so that only the form differs.
`equal_lambda` compares the forms untuned, with 0.95 for every λ and one learning rate.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from training.errors import BadInput
from training.evaluate.intervals import over_seeds
from training.methods import Method
from training.methods.omar import OmarConfig
from training.records import Episode, Move, Scenario, ScoredEpisode, Trace, Turn
from training.seeding import derive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.records import Floats

    Ints = NDArray[np.int64]

TUNING_SEEDS = 2


@dataclass(frozen=True, slots=True)
class Task:
    """One task. `lengths` are the tokens of each turn; `deciding` of them, evenly spaced from the first, must be right.

    `visible`: whether the critics see the tokens of the current turn. They always see the turn, the position and the
    number of turns that have succeeded so far. `noise` is the standard deviation of the noise added to the reward.
    """

    about: str
    lengths: tuple[int, ...]
    deciding: int = 1
    visible: bool = True
    noise: float = 0.5
    actions: int = 4
    episodes: int = 16
    steps: int = 120
    critic_lr: float = 0.02
    critic_warmup: int = 10

    @property
    def pattern(self) -> tuple[int, ...]:
        """The turn of each position of a trace: -1 for the reply that is read, then the turn's tokens."""
        return tuple(k if at else -1 for k, length in enumerate(self.lengths) for at in range(length + 1))


TASKS = {
    "seen": Task("short equal turns; the critic sees the turn under way", (12,) * 4),
    "unseen": Task(
        "short equal turns; only the reply shows the critic what a turn was worth", (12,) * 4, visible=False
    ),
    "long": Task("long equal turns and more noise, otherwise as unseen", (24,) * 6, visible=False, noise=1.0),
    "joint": Task("two tokens of a turn must be right together", (12,) * 6, deciding=2, noise=0.3),
    "uneven": Task("turns of 2 and of 40 tokens, otherwise as unseen", (2, 2, 40, 2, 2, 40, 2, 2), visible=False),
}

RATES = (1.5, 4.5, 13.5)
FORMS: dict[str, list[dict[str, Any]]] = {
    "flat": [{"advantage": "flat", "lam": lam} for lam in (0.5, 0.8, 0.9, 0.95, 0.98, 1.0)],
    "hierarchical": [
        {"lam": lam, "lam_turn": turn}
        for lam, turn in ((0.95, 0.3), (0.95, 0.6), (1.0, 0.0), (1.0, 0.3), (1.0, 0.6), (1.0, 1.0))
    ],
}
"""The settings of each form; each is tried with every learning rate of `RATES`."""


@dataclass(slots=True)
class Adam:
    """Adam for one array (Kingma and Ba, 2015)."""

    lr: float
    mean: Floats | float = 0.0
    square: Floats | float = 0.0
    steps: int = 0

    def step(self, gradient: Floats) -> Floats:
        """Return what to add to the array for an ascent along `gradient`."""
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        scale = np.sqrt(self.square / (1 - 0.999**self.steps)) + 1e-8
        change: Floats = self.lr * (self.mean / (1 - 0.9**self.steps)) / scale
        return change


@dataclass(slots=True)
class Learner:
    """A tabular policy with linear value heads on one task."""

    task: Task
    config: OmarConfig
    lr: float
    logits: Floats = field(init=False)
    heads: dict[str, Floats] = field(init=False)
    optimizers: dict[str, Adam] = field(init=False)
    places: Ints = field(init=False)
    deciding: list[Ints] = field(init=False)
    method: Method = field(init=False)
    episode: Episode = field(init=False)

    def __post_init__(self) -> None:
        task = self.task
        self.places = np.flatnonzero(np.array(task.pattern) >= 0)
        self.logits = np.zeros((len(self.places), task.actions))
        starts = np.cumsum((0, *task.lengths[:-1]))
        self.deciding = [
            start + np.arange(task.deciding) * (length // task.deciding)
            for start, length in zip(starts, task.lengths, strict=True)
        ]
        self.method, self.episode = self.config.build(), _episode(task)
        names = self.method.needs.critic
        width = _width(task)
        self.heads = {name: np.zeros(width) for name in names}
        self.optimizers = {name: Adam(task.critic_lr) for name in names}

    def policy(self) -> Floats:
        """Return the probabilities of the actions at each sampled position."""
        weights = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
        probabilities: Floats = weights / weights.sum(axis=1, keepdims=True)
        return probabilities

    def success(self) -> float:
        """Return the expected share of turns that succeed, exactly. Action 0 is the right one."""
        right = self.policy()[:, 0]
        return fmean(float(right[places].prod()) for places in self.deciding)

    def step(self, rng: np.random.Generator, *, learn: bool) -> None:
        """Play a batch, credit it, update critics and (with `learn`) policy."""
        task, policy = self.task, self.policy()
        draws = rng.random((task.episodes, len(self.places), 1))  # one per token, whatever the policy is
        actions = (draws > policy.cumsum(axis=1)).sum(axis=2).clip(max=task.actions - 1)
        good = np.stack([(actions[:, places] == 0).all(axis=1) for places in self.deciding], axis=1)
        rewards = good.mean(axis=1) + task.noise * rng.normal(size=task.episodes)
        features = _features(task, actions, good)
        values = {name: features @ weights for name, weights in self.heads.items()}
        scored = [
            _scored(self.episode, float(reward), {name: rows[n] for name, rows in values.items()})
            for n, reward in enumerate(rewards)
        ]
        credit = [self.method.credit([episode])[0].traces[0] for episode in scored]
        gradient = np.zeros_like(self.logits)
        errors = {name: np.zeros_like(rows) for name, rows in values.items()}
        for n, trace in enumerate(credit):
            assert trace is not None
            assert trace.ppo is not None
            chosen = np.eye(task.actions)[actions[n]]
            gradient += trace.ppo[self.places, None] * (chosen - policy) / task.episodes
            for name, rows in errors.items():
                rows[n] = (trace.value_targets[name] - values[name][n]) * trace.value_mask[name]
        for name, rows in errors.items():
            slope = rows.reshape(-1) @ features.reshape(rows.size, -1) / task.episodes
            self.heads[name] += self.optimizers[name].step(slope)
        if learn:
            self.logits += self.lr * gradient


def _width(task: Task) -> int:
    longest = max(task.lengths)
    return 2 * len(task.lengths) + longest + 1 + longest * task.actions * task.visible


def _features(task: Task, actions: Ints, good: Floats | NDArray[np.bool_]) -> Floats:
    """Return what the critics see after each position, (episodes, positions, features)."""
    episodes, turns, longest = len(actions), len(task.lengths), max(task.lengths)
    success = np.asarray(good, dtype=np.float64)
    done = np.cumsum(success, axis=1) - success  # turns that succeeded before each turn
    blocks, start = [], 0
    for k, length in enumerate(task.lengths):
        block = np.zeros((episodes, length + 1, _width(task)))
        block[:, :, k] = 1.0
        block[:, :, turns + k] = done[:, k, None] / turns
        block[:, np.arange(length + 1), 2 * turns + np.arange(length + 1)] = 1.0
        if task.visible:
            chosen = np.eye(task.actions)[actions[:, start : start + length]].reshape(episodes, 1, -1)
            known = np.repeat(np.tri(length + 1, length, -1), task.actions, axis=1)
            block[:, :, 2 * turns + longest + 1 :][:, :, : length * task.actions] = chosen * known
        blocks.append(block)
        start += length
    return np.concatenate(blocks, axis=1)


_SCENARIO = Scenario(id="hierarchy", game="toy", seats=("learner",))
_MOVE = Move(action="say")


def _episode(task: Task) -> Episode:
    """Return the episode that every run of a task uses: credit depends on the positions of sampled tokens only."""
    pattern = task.pattern
    trace = Trace(
        seat=0,
        tokens=(0,) * len(pattern),
        mask=tuple(int(turn >= 0) for turn in pattern),
        turn=pattern,
        logprobs=(0.0,) * len(pattern),
    )
    turns = tuple(Turn(seat=0, reply="", move=_MOVE, passed=True) for _ in task.lengths)
    return Episode(scenario=_SCENARIO, turns=turns, traces=(trace,))


def _scored(episode: Episode, reward: float, values: dict[str, Floats]) -> ScoredEpisode:
    """Return one episode as the trainer would pass it to a method."""
    return ScoredEpisode(
        episode=episode,
        returns={0: reward},
        turn_rewards=(0.0,) * len(episode.turns),
        passed=(True,) * len(episode.turns),
        values={name: [row] for name, row in values.items()},
    )


def learned(task: Task, settings: dict[str, Any], lr: float, seed: int) -> float:
    """Return the expected success of one run, averaged over its steps after the critics' warm-up: 0 to 1."""
    rng = np.random.default_rng(derive(seed, "hierarchy"))
    learner = Learner(task, OmarConfig(**{"gamma_turn": 1.0, "filter": "off", **settings}), lr)
    curve = []
    for number in range(task.steps):
        learner.step(rng, learn=number >= task.critic_warmup)
        if number >= task.critic_warmup:
            curve.append(learner.success())
    return fmean(curve)


def tuned(task: Task, form: str) -> dict[str, Any]:
    """Return the form's best settings and learning rate, and the success of every setting on the tuning seeds."""
    table = []
    for settings, lr in product(FORMS[form], RATES):
        runs = [learned(task, settings, lr, derive(seed, "tuning")) for seed in range(TUNING_SEEDS)]
        table.append({"settings": settings, "lr": lr, "success": round(fmean(runs), 4)})
    best = max(table, key=lambda row: row["success"])
    return {"settings": best["settings"], "lr": best["lr"], "tuning": table}


def compared(name: str, seeds: int) -> dict[str, Any]:
    """Return both forms at their best settings on fresh seeds, and `matched`, with differences paired by seed."""
    task, began = TASKS[name], time.monotonic()
    arms = {form: tuned(task, form) for form in FORMS}
    lam = arms["flat"]["settings"]["lam"]
    horizon = lam ** fmean(task.lengths)
    arms["matched"] = {"settings": {"lam": lam, "lam_turn": horizon}, "lr": arms["flat"]["lr"]}
    for arm in arms.values():
        arm["success"] = [round(learned(task, arm["settings"], arm["lr"], seed), 6) for seed in range(seeds)]
        arm |= {"mean": fmean(arm["success"])}
    minus_flat = {arm: difference(arms[arm]["success"], arms["flat"]["success"]) for arm in ("hierarchical", "matched")}
    print(f"{name}: hierarchical minus flat {minus_flat['hierarchical']}", file=sys.stderr)
    return {
        "task": asdict(task),
        "arms": arms,
        "minus_flat": minus_flat,
        "seconds": round(time.monotonic() - began, 1),
    }


def equal_lambda(name: str, seeds: int) -> dict[str, Any]:
    """Return both forms with 0.95 for every λ and the middle learning rate, with their difference paired by seed."""
    settings: dict[str, dict[str, Any]] = {
        "flat": {"advantage": "flat", "lam": 0.95},
        "hierarchical": {"lam": 0.95, "lam_turn": 0.95},
    }
    success = {
        form: [round(learned(TASKS[name], chosen, RATES[1], seed), 6) for seed in range(seeds)]
        for form, chosen in settings.items()
    }
    return {"lr": RATES[1], **success, "minus_flat": difference(success["hierarchical"], success["flat"])}


def difference(first: Sequence[float], second: Sequence[float]) -> dict[str, Any]:
    """Return the mean paired difference over seeds with its 95 % interval."""
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    return {"mean": fmean(gaps), "interval": list(over_seeds(gaps))}


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the comparison on every requested task."""
    names = arguments.tasks.split(",") if arguments.tasks else list(TASKS)
    if unknown := [name for name in names if name not in TASKS]:
        raise BadInput(f"unknown task {unknown[0]!r}; known: {', '.join(TASKS)}", "--tasks")
    return {
        "measurement": "hierarchy",
        "unit": "expected share of turns that succeed, mean over training",
        "seeds": arguments.seeds,
        "tuning_seeds": TUNING_SEEDS,
        "tasks": {name: compared(name, arguments.seeds) for name in names},
        "equal_lambda": {name: equal_lambda(name, arguments.seeds) for name in names},
    }


def show(result: dict[str, Any]) -> str:
    """Return one line per task."""
    lines = []
    for name, row in result["tasks"].items():
        means = "  ".join(f"{arm} {row['arms'][arm]['mean']:.3f}" for arm in ("flat", "hierarchical", "matched"))
        gap = row["minus_flat"]["hierarchical"]
        low, high = gap["interval"]
        lines.append(f"{name:<8} {means}  hierarchical - flat {gap['mean']:+.3f} [{low:+.3f}, {high:+.3f}]")
    return "\n".join(lines)
