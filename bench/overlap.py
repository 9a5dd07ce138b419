"""Sampling ahead beside taking turns: conversations per hour of whole runs with `cluster.lag` 1 and 0.

Each run has one engine and one learner rank, each in a process of its own on one core in both arms, and differs from
the other arm by its lag alone. The learner plays the run's starting model, whose replies are sampled and not learned:
so sampling and learning take about alike, which is where a lag gains most. The rate is of all steps but the first two,
in which processes warm up. Arms alternate over the seeds; `reward` is the mean of the last half of the steps.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from typing import Any

from bench import alternate, whole_steps
from bench.recorded_conversations import conditions

WARM = 2
"""Steps at the beginning that the rate leaves out."""


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return both arms by seed."""
    arms: dict[int, list[dict[str, float]]] = {1: [], 0: []}
    for seed in range(arguments.seed, arguments.seed + arguments.rounds):
        for lag in (1, 0) if seed % 2 else (0, 1):  # whichever is first meets a machine that has just begun
            arms[lag].append(_run(arguments, lag, seed))
    a, b = ([reading["rate"] for reading in arms[lag]] for lag in (1, 0))
    rewards = [lagging["reward"] - alternating["reward"] for lagging, alternating in zip(arms[1], arms[0], strict=True)]
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
    config = whole_steps.configuration(
        arguments,
        seed,
        rollout={"scenarios": arguments.games, "games": 8},
        learn={"steps": arguments.steps, "save_every": arguments.steps, "epochs": arguments.epochs},
        cluster={"lag": lag, "address": "local"},  # without an address and a lag everything stays in this process
    )
    lines = whole_steps.steps_of({**config, "opponents": [{"source": "start"}]})
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
    reward = result["reward_difference"]
    return (
        f"lag 1 against 0: {alternate.line(result, result['unit'])}; reward {reward['mean']:+.3f} ± "
        f"{reward['half_width']:.3f} over {reward['seeds']} seeds"
    )
