"""Whether the watchdog's rules on silence and waiting stay quiet while crew and imposter learn, over seeds.

Each run is short training of a small model in Among Us in two phases: three crewmates learn, then the imposter, both
against the starting model. The rules have their default thresholds, and the other rules are off. A rule fires where a
share stays above its threshold for `stop.patience` consecutive steps: where the smallest share of such a window is
above it. Reported by role are the largest of these numbers, the largest share of a single step, and why the watchdog
ended a run, if it did.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.rows import UNWATCHED, metrics_of, run, stored_row
from training.errors import BadInput
from training.run_sections import StopSection

RULES = ("silent", "waits")
ROLES = ("crewmate", "imposter")
CREW, IMPOSTER = 5, 5
"""Steps of the phases: as many as a rule needs."""
GAMES = 3
SETTINGS = {"width": 2, "height": 1, "tasks": 3, "cooldown": 1, "rounds": 6, "task_time": 1, "wait": 1, "discussion": 1}
"""A short game on a small ship, in which random players meet about once, with one message from everybody."""
OTHERS = {name: threshold for name, threshold in UNWATCHED.items() if name not in ("silent", "waits")}
"""Every other rule of the watchdog, off."""
LEARN = {
    "lr": 3e-4,
    "lora": None,
    "critic_warmup": 1,
    "ent_coef": 0.01,
    "kl": "none",
    "kl_measured": False,
    "threads": 1,
    "tokens_per_batch": 8192,
}


def main(arguments: Namespace) -> dict[str, Any]:
    """Return a row for each seed, and over all of them the largest shares and how many runs the watchdog ended."""
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    runs = []
    for seed in range(arguments.seeds):
        folder = arguments.dir.absolute() / f"seed-{seed}"
        config = configuration(arguments.model, seed)
        row = stored_row(folder, {"config": config}, partial(_measured, config, folder))
        print(f"seed {seed}: {row['why'] or row['largest']}", file=sys.stderr)
        runs.append({"seed": seed, **{name: value for name, value in row.items() if name != "config"}})
    return {
        "config": configuration(arguments.model, 0),
        "seeds": arguments.seeds,
        "ended": sum(run["result"] != "succeeded" for run in runs),
        "largest": {name: _most([run["largest"] for run in runs], name) for name in _names()},
        "lasting": {name: _most([run["lasting"] for run in runs], name) for name in _names()},
        "runs": runs,
    }


def configuration(model: str, seed: int) -> dict[str, Any]:
    """Return the configuration of a run."""
    crew = {"source": "start", "learner": ["crewmate"], "partner": "start"}
    imposter = {"source": "phase crew", "learner": ["imposter"], "ally": "start"}
    steps = CREW + IMPOSTER
    return {
        "seed": seed,
        "model": {"base": model, "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": "among_us", "settings": SETTINGS},
        "data": {"limit": 1},
        "sampling": {"max_tokens": 16, "constrain": True},
        "rollout": {"scenarios": GAMES},
        "method": {"name": "listen_speak"},
        "reward": {"scale": "raw"},
        "learn": {**LEARN, "steps": steps, "save_every": steps},
        "stop": OTHERS,
        "phases": [
            {"name": "crew", "steps": CREW, "opponents": [crew]},
            {"name": "imposter", "steps": IMPOSTER, "opponents": [imposter]},
        ],
    }


def _measured(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    from training.config import parse

    result, run_dir = run(config, folder / "train")
    lines, patience = metrics_of(run_dir), parse(config).stop.patience
    return {
        "result": result["result"],
        "why": result["why"],
        "steps": result["step"],
        "cpu_s": result["cpu_s"],
        "largest": {name: _most(lines, name) for name in _names()},
        "lasting": {name: lasting(_by_phase(lines, name), patience) for name in _names()},
        "curves": {name: [line.get(name) for line in lines] for name in ("meetings", *_names())},
    }


def _names() -> list[str]:
    return [f"{rule}/{role}" for rule in RULES for role in ROLES]


def _most(rows: Iterable[Mapping[str, Any]], name: str) -> float | None:
    return max((row[name] for row in rows if row.get(name) is not None), default=None)


def _by_phase(lines: Sequence[Mapping[str, Any]], name: str) -> list[list[float | None]]:
    """Return a metric's steps by phase: the watchdog begins anew in each."""
    phases = sorted({line["phase"] for line in lines})
    return [[line.get(name) for line in lines if line["phase"] == phase] for phase in phases]


def lasting(phases: Iterable[Sequence[float | None]], patience: int) -> float | None:
    """Return the largest share that was reached in `patience` steps in a row of one phase; a step without is none."""
    windows = [steps[first : first + patience] for steps in phases for first in range(len(steps) - patience + 1)]
    known = [[share for share in window if share is not None] for window in windows]
    return max((min(window) for window in known if len(window) == patience), default=None)


def show(result: dict[str, Any]) -> str:
    """Return a line for each share with its threshold, and how many runs the watchdog ended."""
    bounds = StopSection()
    lines = [
        f"{name:16} largest {_text(result['largest'][name])}, {bounds.patience} steps in a row "
        f"{_text(result['lasting'][name])} (threshold {getattr(bounds, name.partition('/')[0]):g})"
        for name in _names()
    ]
    return "\n".join([*lines, f"runs that ended early: {result['ended']} of {result['seeds']}"])


def _text(share: float | None) -> str:
    return "none" if share is None else f"{share:.3f}"
