"""What a critic is worth: item negotiation with `tiny` under several value heads, by the steps to the same reward.

`ridge` is the default critic, `start` the same on hidden states of the starting model, and `constant` a baseline that
knows nothing of the state: value heads that stay at the running mean of their targets. The runs of a seed differ in the
critic only; the watchdog is off, so that all have the same number of steps. The reward to reach is the highest mean of
`WINDOW` steps that all forms reach with this seed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.rows import UNWATCHED, against, bargaining, metrics_of, over_seeds, run, stored_row

STEPS = 30
WINDOW = 5
"""Steps in the moving mean of the reward."""
WARMUP = 3
CONSTANT = {"critic": {"kind": "linear"}, "critic_lr": 1e-12, "critic_passes": 1}
"""Value heads that stay at the running mean: of kind `linear`, with a learning rate at which nothing moves."""
FORMS: dict[str, dict[str, Any]] = {"ridge": {}, "start": {"critic": {"features": "start"}}, "constant": CONSTANT}
CURVES = ("reward", "agreement", "parse_rate", "value_r2_turn", "explained_variance_turn", "advantage_std")


def critic(forms: list[str], seeds: int, steps: int, folder: Path) -> dict[str, Any]:
    """Train every form with every seed; return steps to the same reward, mean rewards, and differences by seed.

    Seeds are the outer loop, so that an interrupted comparison is complete for the seeds that it has.
    """
    steps = steps or STEPS
    rows: dict[str, list[dict[str, Any]]] = {form: [] for form in forms}
    for seed in range(seeds):
        for form in forms:
            run_folder = folder / f"critic-{form}-{seed}"
            wanted = {"steps_wanted": steps, "learn": FORMS[form]}
            rows[form].append(stored_row(run_folder, wanted, partial(_trained, form, seed, steps, run_folder)))
            print(f"{form}, seed {seed}: {fmean(rows[form][-1]['curves']['reward']):.4f}", file=sys.stderr)
    return {
        "task": {"game": "negotiation", "data": "items", "base": "tiny", "steps": steps},
        "window": WINDOW,
        "seeds": seeds,
        **compared({form: [row["curves"]["reward"] for row in each] for form, each in rows.items()}, rows),
    }


def compared(rewards: Mapping[str, Sequence[Sequence[float]]], rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return each form's steps to the same reward and mean reward over seeds, and both against the first form's.

    `rewards[form][seed]` is the reward of every step.
    """
    forms = list(rewards)
    levels, steps = steps_to_same(rewards)
    means = {form: [fmean(curve) for curve in rewards[form]] for form in forms}
    summaries = {
        form: {"runs": rows[form], "steps": steps[form], **over_seeds("mean", means[form])}
        | {"mean_steps": over_seeds("mean", steps[form])}
        for form in forms
    }
    return {"levels": levels, "forms": summaries, **against(steps, forms, "steps"), **against(means, forms, "reward")}


def steps_to_same(rewards: Mapping[str, Sequence[Sequence[float]]]) -> tuple[list[float], dict[str, list[float]]]:
    """Return for each seed the highest moving mean that all forms reach, and for each form the steps to it."""
    levels = [min(max(moving(curve)) for curve in curves) for curves in zip(*rewards.values(), strict=True)]
    return levels, {
        form: [float(steps_to(curve, level)) for curve, level in zip(curves, levels, strict=True)]
        for form, curves in rewards.items()
    }


def moving(curve: Sequence[float]) -> list[float]:
    """Return the means of every `WINDOW` steps in a row."""
    return [fmean(curve[end - WINDOW : end]) for end in range(WINDOW, len(curve) + 1)]


def steps_to(curve: Sequence[float], level: float) -> int:
    """Return the first step (from 1) at which the mean of the last `WINDOW` steps is at least `level`."""
    return next(step for step, mean in enumerate(moving(curve), WINDOW) if mean >= level - 1e-12)


def settings(form: str, seed: int, steps: int) -> dict[str, Any]:
    """Return the configuration of one run."""
    learn = {"steps": steps, "lora": None, "lr": 6e-4, "threads": 1, "save_every": steps, "critic_warmup": WARMUP}
    return bargaining(seed) | {
        "rollout": {"scenarios": 8, "games": 2},
        "learn": learn | FORMS[form],
        "stop": UNWATCHED,
    }


def _trained(form: str, seed: int, steps: int, folder: Path) -> dict[str, Any]:
    outcome, run_dir = run(settings(form, seed, steps), folder / "train")
    lines = metrics_of(run_dir)
    curves = {name: [round(line[name], 4) for line in lines if name in line] for name in CURVES}
    row = {"seed": seed, "result": outcome["result"], "why": outcome["why"], "steps": outcome["step"]}
    return {**row, "train_s": outcome["wall_s"], "curves": curves}
