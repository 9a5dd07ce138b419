"""Sampling ahead beside taking turns: conversations per hour of whole runs with `cluster.lag` 1 and 0.

Each run has one engine and one learner rank, each in a process of its own on one core in both arms, and differs from
the other arm by its lag alone. The rate is of all steps but the first two, in which processes warm up. Arms alternate
over the seeds; `reward` is the mean of the last half of the steps.
"""

from __future__ import annotations

import statistics
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from bench.recorded_conversations import conditions
from training.attempts.start import start
from training.config import parse
from training.learn.trainer import run
from training.rundir import RunDir
from training.store import read_lines

WARM = 2
"""Steps at the beginning that the rate leaves out."""


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return both arms by seed."""
    arms: dict[int, list[dict[str, float]]] = {1: [], 0: []}
    for seed in range(arguments.seed, arguments.seed + arguments.rounds):
        for lag, readings in arms.items():
            readings.append(_run(arguments, lag, seed))
    a, b = ([reading["rate"] for reading in arms[lag]] for lag in (1, 0))
    rewards = [one["reward"] - other["reward"] for one, other in zip(arms[1], arms[0], strict=True)]
    return {
        "unit": "conversations per hour",
        "sides": {"a": "lag 1", "b": "lag 0"},
        "a": {"median": statistics.median(a), "spread": [min(a), max(a)], "runs": arms[1]},
        "b": {"median": statistics.median(b), "spread": [min(b), max(b)], "runs": arms[0]},
        "ratio": statistics.median(a) / statistics.median(b),
        "ratios": [round(first / second, 3) for first, second in zip(a, b, strict=True)],
        "reward_difference": _interval(rewards),
        "work": {"steps": arguments.steps, "games": arguments.games * 8},
        "seed": arguments.seed,
        "conditions": conditions(arguments, 1),
    }


def _interval(differences: list[float]) -> dict[str, float | int]:
    """Return mean and half width of Student's 95 % interval."""
    from scipy.stats import t

    count = len(differences)
    half = 0.0
    if count > 1:
        half = float(t.ppf(0.975, count - 1)) * statistics.stdev(differences) / count**0.5
    return {"mean": statistics.mean(differences), "half_width": half, "seeds": count}


def _run(arguments: Namespace, lag: int, seed: int) -> dict[str, float]:
    config = {
        "seed": seed,
        "model": {"base": arguments.model, "device": "cpu"},
        "engine": {"name": arguments.engine},
        "sampling": {"max_tokens": 24},
        "game": {"name": "negotiation", "settings": {"turn_limit": 4}},
        "rollout": {"scenarios": arguments.games, "games": 8},
        "learn": {
            "steps": arguments.steps,
            "lr": 1e-4,
            "critic_warmup": 1,
            "save_every": arguments.steps,
            "epochs": arguments.epochs,
            "tokens_per_batch": arguments.tokens,
        },
        "stop": {"failing": 1.0},
        "cluster": {"lag": lag, "address": "local"},  # without an address and a lag everything stays in this process
    }
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        run_dir = RunDir(Path(scratch) / "run")
        outcome = run(start(parse(config), run_dir, Path(scratch)), run_dir)
        if outcome["result"] != "succeeded":
            raise RuntimeError(outcome["why"])
        lines = [each for each, _ in read_lines(run_dir.attempt(1).metrics)]
    warm = lines[WARM:]
    seconds = warm[-1]["at"] - lines[WARM - 1]["at"]
    return {
        "rate": 3600 * len(warm) * arguments.games * 8 / seconds,
        "reward": statistics.mean(each["reward"] for each in lines[len(lines) // 2 :]),
        "sampling_s": statistics.mean(each["sampling_s"] for each in warm),
        "learning_s": statistics.mean(each["learning_s"] for each in warm),
        "sync_s": statistics.mean(each["sync_s"] for each in warm),
        "step_s": seconds / len(warm),
    }


def line(result: dict[str, Any]) -> str:
    """Return the comparison in one line."""
    ours, theirs = (round(result[side]["median"]) for side in "ab")
    low, high = min(result["ratios"]), max(result["ratios"])
    reward = result["reward_difference"]
    return (
        f"lag 1 against 0: {ours} against {theirs} conversations per hour, {result['ratio']:.2f} ({low:.2f} to "
        f"{high:.2f}); reward {reward['mean']:+.3f} ± {reward['half_width']:.3f} over {reward['seeds']} seeds"
    )
