"""Whole steps of a run: the seconds of each phase, from the metrics that the run writes.

`sampling`, `learning` and `sync` are what the run reports. `rest` is what a step takes beyond these: scoring, metrics,
the records of its games, checkpoints. Where a run samples ahead, phases overlap, and `rest` is 0 at least.
"""

from __future__ import annotations

import statistics
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training import bases
from training.attempts.start import start
from training.config import parse
from training.rundir import RunDir
from training.store import read_lines

StepMetrics = Mapping[str, Any]
"""The line that a run writes of a step."""
PHASES = ("sampling", "learning", "sync", "rest")


def configuration(arguments: Namespace, seed: int, **sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a short run of item negotiation; `sections` are merged into it."""
    config: dict[str, Any] = {
        "seed": seed,
        "model": {"base": arguments.model, "device": "cpu"},
        "engine": {"name": arguments.engine},
        "sampling": {"max_tokens": 24},
        "game": {"name": "negotiation", "settings": {"turn_limit": 4}},
        "learn": {
            "lr": 1e-4,
            "critic_warmup": 1,
            "tokens_per_batch": arguments.tokens,
            "threads": 1,
            "kl": "none",
            "kl_measured": False,
            "ent_coef": 1e-3,  # few games may all end alike, and teach nothing else
        },
        "stop": {"failing": 1.0},
    }
    for name, values in sections.items():
        config[name] = {**config.get(name, {}), **values}
    return config


def steps_of(config: dict[str, Any]) -> list[StepMetrics]:
    """Run a configuration in a temporary folder; return a line of metrics for each step."""
    from training.learn.trainer import run  # imports torch, which pages of results do not need

    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as scratch:
        run_dir = RunDir(Path(scratch) / "run")
        outcome = run(start(parse(config), run_dir, Path(scratch)), run_dir)
        if outcome["result"] != "succeeded":
            raise RuntimeError(outcome["why"])
        return [line for line, _ in read_lines(run_dir.attempt(1).metrics)]


def seconds(lines: Sequence[StepMetrics], warm: int) -> list[dict[str, float]]:
    """Return the seconds of each phase and of the whole, by step, without the first `warm` ≥ 1 steps."""
    rows = []
    for before, line in zip(lines[warm - 1 :], lines[warm:], strict=False):
        whole = line["at"] - before["at"]
        phases = {name: float(line[f"{name}_s"]) for name in PHASES[:3]}
        rows.append({**phases, "rest": max(0.0, whole - sum(phases.values())), "step": whole})
    return rows


def summary(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return median and spread of each phase and of the whole, the share of each phase in all steps, and the steps."""
    whole = sum(row["step"] for row in rows)
    return {
        "seconds": {name: _spread([row[name] for row in rows]) for name in (*PHASES, "step")},
        "shares": {name: sum(row[name] for row in rows) / whole for name in PHASES},
        "steps": list(rows),
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "spread": [min(values), max(values)]}


def weight_bytes(model: str, size: int = 4) -> int:
    """Return the bytes of all weights of a model at `size` bytes each; tied ones count once."""
    from safetensors import safe_open

    numbers = 0
    for file in bases.resolve(model).glob("*.safetensors"):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                count = 1
                for length in tensors.get_slice(name).get_shape():
                    count *= length
                numbers += count
    return size * numbers


def words(result: Mapping[str, Any]) -> str:
    """Return the median seconds of each phase in words."""
    return ", ".join(f"{name} {result['seconds'][name]['median']:.2f} s" for name in (*PHASES, "step"))
