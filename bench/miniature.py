"""The miniature: forms of OMAR's credit side by side, on a toy, on item negotiation and on Werewolf with `tiny`.

`toy`: steps until the reward holds at 90 %. `negotiation`: a training run per form and seed with the real trainer, then
a head-to-head of its last checkpoint against the frozen cold start, seats swapped on every scenario. `werewolf` and
`hack` are in `bench.werewolf`, `critic` is in `bench.baselines`, `kuhn`, `tictactoe` and `hanabi` in
`bench.strategic`, `among_us` in `bench.among_us`, `csp` in `bench.csp`, those that begin with `epo_` in `bench.epo`.
Intervals are 95 %, Student's t over seeds; each head-to-head has an interval over scenarios as well. A failed run is
reported, not left out. Each row is stored in `row.json` of its folder, and the same command continues where it was
interrupted.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Collection
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench import among_us, baselines, csp, epo, strategic
from bench.forms import chosen_forms
from bench.rows import against, bargaining, metrics_of, over_seeds, run, stored_row
from training.errors import BadInput
from training.methods.omar import OmarConfig

UNDISCOUNTED = {"gamma_turn": 1.0, "filter": "off"}
FORMS: dict[str, dict[str, Any]] = {
    "default": {},
    "undiscounted": {"gamma_turn": 1.0},
    "paper": {"critic_heads": "one", "turn_value": "last_token", "filter": "zero"},
    "paper_min": {"critic_heads": "one", "turn_value": "last_token"},
    "flat": {"advantage": "flat"},
    "turn_only": {"advantage": "turn_only"},
    "two_levels": UNDISCOUNTED,
    "two_levels_95": {**UNDISCOUNTED, "lam_turn": 0.95, "lam": 0.95},
    "two_levels_turns": {**UNDISCOUNTED, "lam_turn": 0.5},
    "one_level": {"advantage": "flat", "filter": "off"},
    "one_level_95": {"advantage": "flat", "lam": 0.95, "filter": "off"},
}
"""The forms. Pairs that differ in one thing: `undiscounted` and `default` in γ_turn; `paper_min` and `default` in
the heads and where a turn is valued; `paper` and `paper_min` in the filter; `two_levels` and `one_level` in the
hierarchy (no discount, no filter, λ = 1: with exact critics their credit is the same); `two_levels_95` and
`one_level_95` likewise at λ = 0.95; `two_levels_turns` and `two_levels` in λ_turn."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the comparison of the requested forms."""
    apart: dict[str, Callable[[Namespace], dict[str, Any]]] = {
        **dict.fromkeys(strategic.TASKS, strategic.main),
        "among_us": among_us.main,
        "csp": csp.main,
    }
    if arguments.part in apart or arguments.part.startswith("epo_"):
        return apart.get(arguments.part, epo.main)(arguments)
    known = _known(arguments.part)
    forms = chosen_forms(arguments.forms, known)
    _one_thread()
    if arguments.part == "toy":
        return toy(forms, arguments.seeds, arguments.steps)
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    if arguments.part == "critic":
        return baselines.critic(forms, arguments.seeds, arguments.steps, arguments.dir.absolute())
    if arguments.part == "negotiation":
        return negotiation(forms, arguments.seeds, arguments.steps, arguments.conversations, arguments.dir)
    from bench import werewolf

    folder = arguments.dir.absolute()
    if arguments.part == "hack":
        return werewolf.hack(forms, arguments.seeds, arguments.steps, folder)
    return werewolf.werewolf(arguments.seeds, arguments.steps, arguments.conversations, folder)


def _known(part: str) -> Collection[str]:
    """Return the names of what a part can compare."""
    if part == "hack":
        from bench.werewolf import FILTERS

        return FILTERS
    if part == "critic":
        return baselines.FORMS
    return ("default",) if part == "werewolf" else tuple(FORMS)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def toy(forms: list[str], seeds: int, most_steps: int) -> dict[str, Any]:
    """Return per form the steps to 90 % over seeds; a seed that does not reach it counts with the most steps."""
    from bench.signal import noise_to_signal
    from bench.toy import DECIDES, Toy, steps_to_reach

    size = Toy(most_steps=most_steps) if most_steps else Toy()
    rows: dict[str, Any] = {}
    steps: dict[str, list[float]] = {}
    for form in forms:
        began = time.monotonic()
        reached = [steps_to_reach(OmarConfig(**FORMS[form]), seed, size) for seed in range(seeds)]
        steps[form] = [float(size.most_steps if count is None else count) for count in reached]
        rows[form] = {
            "steps": reached,
            "median": median(steps[form]),
            "not_reached": reached.count(None),
            **over_seeds("mean", steps[form]),
            "noise_to_signal": {
                critic: noise_to_signal(
                    OmarConfig(**FORMS[form]).build(), size, 1 + DECIDES, converged=critic == "converged"
                )
                for critic in ("blank", "converged")
            },
            "seconds": round(time.monotonic() - began, 1),
        }
    return {"task": _task(size), "seeds": seeds, "forms": rows, **against(steps, forms, "steps")}


def _task(size: object) -> dict[str, Any]:
    return {name: getattr(size, name) for name in size.__slots__}  # type: ignore[attr-defined]


def negotiation(forms: list[str], seeds: int, steps: int, conversations: int, folder: Path) -> dict[str, Any]:
    """Train and measure every form and seed; return the head-to-heads, and each form's gain minus the first form's.

    Seeds are the outer loop, so that an interrupted comparison is complete for the seeds that it has.
    """
    rows: dict[str, list[dict[str, Any]]] = {form: [] for form in forms}
    for seed in range(seeds):
        for form in forms:
            row = _measured(form, seed, steps or 60, conversations, folder / f"{form}-{seed}")
            print(f"{form}, seed {seed}: {row['difference']}", file=sys.stderr)
            rows[form].append(row)
    gains = {
        form: {row["seed"]: row["difference"]["mean"] for row in rows[form] if row["difference"]} for form in forms
    }
    summaries: dict[str, Any] = {}
    for form in forms:
        of_form = list(gains[form].values())
        summaries[form] = {"runs": rows[form], **(over_seeds("gain", of_form) if of_form else {})}
    shared = [seed for seed in range(seeds) if all(seed in gains[form] for form in forms)]
    paired = {form: [gains[form][seed] for seed in shared] for form in forms}
    return {
        "task": {"game": "negotiation", "data": "items", "base": "tiny", "steps": steps or 60},
        "conversations": conversations,
        "seeds": seeds,
        "forms": summaries,
        "compared_seeds": shared,
        **(against(paired, forms, "gain") if shared else {}),
    }


def _measured(form: str, seed: int, steps: int, conversations: int, folder: Path) -> dict[str, Any]:
    """Return the row of a form and seed: from its folder if an earlier call stored it there, else measured."""
    wanted = {"steps_wanted": steps, "conversations": conversations, "method": FORMS[form]}
    return stored_row(folder, wanted, lambda: _train_and_measure(form, seed, steps, conversations, folder))


def _learn(steps: int) -> dict[str, Any]:
    return {
        "steps": steps,
        "lora": None,
        "lr": 3e-4,
        "critic_lr": 5e-4,
        "threads": 1,
        "save_every": steps,
        "critic_warmup": min(5, steps // 4),
    }


def _train_and_measure(form: str, seed: int, steps: int, conversations: int, folder: Path) -> dict[str, Any]:
    """Run one form with one seed, then its head-to-head against the cold start."""
    shared = bargaining(seed)
    rollout = {"scenarios": 8, "games": 2}
    wanted = {**shared, "learn": _learn(steps), "rollout": rollout, "method": {"name": "omar", **FORMS[form]}}
    trained, run_dir = run(wanted, folder / "train")
    latest = run_dir.latest_checkpoint()
    row = {"seed": seed, "result": trained["result"], "why": trained["why"], "steps": trained["step"]}
    if latest is None:
        return {**row, "difference": None, "train_s": trained["wall_s"]}
    measure = {"model": str(latest[1]), "opponent": "tiny", "conversations": conversations}
    measured, _ = run({**shared, "kind": "eval", "evaluate": measure}, folder / "eval")
    summary = measured.get("summary", {})
    return {
        **row,
        "head_to_head": measured["result"],
        "difference": summary.get("difference", {}).get("return"),
        "agreement": summary.get("shared", {}).get("agreement"),
        "parse_rate": summary.get("a", {}).get("parse_rate"),
        "learned": _last_metrics(run_dir),
        "train_s": trained["wall_s"],
        "head_to_head_s": measured["wall_s"],
    }


def _last_metrics(run_dir: Any) -> dict[str, float]:
    """Return the mean of some of the run's metrics over its last five steps."""
    lines = metrics_of(run_dir)[-5:]
    names = ("reward", "agreement", "parse_rate", "entropy", "kl")
    return {
        name: fmean(line[name] for line in lines if name in line) for name in names if any(name in x for x in lines)
    }


def show(result: dict[str, Any]) -> str:
    """Return one line per form: mean, 95 % interval (Student's t over seeds) and the number of seeds."""
    if "before" in result:
        return strategic.show(result)
    if "following" in result:
        return epo.show(result)
    if "counting" in result:
        return csp.show(result)
    rows = []
    for form, row in result["forms"].items():
        mean = row.get("mean", row.get("gain"))
        low, high = row.get("interval", (float("nan"), float("nan")))
        count = f"n = {row['n']}" if "n" in row else ""
        rows.append(f"{form:<14} {mean if mean is not None else float('nan'):>10.3f}   [{low:.3f}, {high:.3f}] {count}")
    return "\n".join(rows)
