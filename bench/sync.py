"""Sync: the share of a training step in which the engines get the new weights.

The run has one engine and one learner rank, each in a process of its own on one core, and no lag, so that a step is the
sum of its phases. Beside it is the same run in one process. The first step, in which processes warm up, is left out.
`bytes` are those of the weights that are sent, in float32.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from bench import whole_steps
from bench.recorded_conversations import conditions, device

STEPS, WARM = 3, 1
TARGETS = {"cpu": 0.05, "cuda": 0.02}
"""The largest share of a step by device."""


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return both runs."""
    runs = {
        "a": whole_steps.steps_of(_config(arguments, {"address": "local"})),
        "b": whole_steps.steps_of(_config(arguments, {})),
    }
    sides = {name: whole_steps.summary(whole_steps.seconds(lines, WARM)) for name, lines in runs.items()}
    size = whole_steps.weight_bytes(arguments.model)
    share, target = sides["a"]["shares"]["sync"], TARGETS[device()]
    return {
        "unit": "seconds of a step",
        "sides": {"a": "an engine and a rank in processes of their own", "b": "one process"},
        **sides,
        "share": share,
        "target": target,
        "ok": share <= target,
        "bytes": size,
        "bytes_per_s": size / sides["a"]["seconds"]["sync"]["median"],
        "work": {
            "steps": STEPS - WARM,
            "games": arguments.games,
            "tokens": [line["trace_tokens"] for line in runs["a"][WARM:]],
        },
        "seed": arguments.seed,
        "conditions": conditions(arguments, 1),
    }


def _config(arguments: Namespace, cluster: dict[str, Any]) -> dict[str, Any]:
    return whole_steps.configuration(
        arguments,
        arguments.seed,
        rollout={"scenarios": 1, "games": arguments.games},
        learn={"steps": STEPS, "save_every": STEPS},
        cluster=cluster,
    )


def line(result: dict[str, Any]) -> str:
    """Return the share, and the seconds of both runs."""
    met = "at most" if result["ok"] else "more than"
    return (
        f"{100 * result['share']:.1f} % of a step, {met} {100 * result['target']:.0f} %; "
        f"{result['bytes'] / 1e6:.0f} MB at {result['bytes_per_s'] / 1e6:.0f} MB/s\n"
        + "\n".join(f"  {result['sides'][name]}: {whole_steps.words(result[name])}" for name in ("a", "b"))
    )
