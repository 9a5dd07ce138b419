"""The miniature: forms of OMAR's credit side by side, on a toy and on item negotiation with `tiny`.

`toy`: steps until the reward holds at 90 %. `negotiation`: a training run per form and seed with the real trainer, then
an arena of its last checkpoint against the frozen cold start, seats swapped on every scenario. Intervals: 95 %,
percentile bootstrap over seeds; beside them each arena's own, over scenarios. A run that fails is told, not left out.
What was measured stays in `row.json` of its folder: the same command again goes on where it was broken off.
"""

from __future__ import annotations

import shutil
import sys
import time
from argparse import Namespace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from training.errors import BadInput
from training.methods.omar import OmarConfig
from training.seeding import derive
from training.store import loads, write_json

INTERRUPTED = 130
FORMS: dict[str, dict[str, Any]] = {
    "default": {},
    "undiscounted": {"gamma_turn": 1.0},
    "paper": {"critic_heads": "one", "turn_value": "last_token", "filter": "zero"},
    "flat": {"advantage": "flat"},
    "turn_only": {"advantage": "turn_only"},
}
"""What is compared. `undiscounted` is the default with γ_turn = 1, as `flat` has no turn decay either."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the comparison of the forms that were asked for."""
    forms = arguments.forms.split(",") if arguments.forms else list(FORMS)
    if unknown := [form for form in forms if form not in FORMS]:
        raise BadInput(f"unknown form {unknown[0]!r}; known: {', '.join(FORMS)}", "--forms")
    _one_thread()
    if arguments.part == "toy":
        return toy(forms, arguments.seeds, arguments.steps)
    if arguments.dir is None:
        raise BadInput("negotiation runs need a directory", "--dir")
    return negotiation(forms, arguments.seeds, arguments.steps, arguments.conversations, arguments.dir)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def toy(forms: list[str], seeds: int, most_steps: int) -> dict[str, Any]:
    """Return per form the steps to 90 % over seeds; a seed that did not get there counts with the most steps."""
    from bench.toy import Toy, steps_to_reach

    size = Toy(most_steps=most_steps) if most_steps else Toy()
    found: dict[str, Any] = {}
    steps: dict[str, list[float]] = {}
    for form in forms:
        began = time.monotonic()
        reached = [steps_to_reach(OmarConfig(**FORMS[form]), seed, size) for seed in range(seeds)]
        steps[form] = [float(size.most_steps if one is None else one) for one in reached]
        found[form] = {
            "steps": reached,
            "median": median(steps[form]),
            "not_reached": reached.count(None),
            **_over_seeds("mean", steps[form], form),
            "seconds": round(time.monotonic() - began, 1),
        }
    return {"task": _task(size), "seeds": seeds, "forms": found, **_against(steps, forms, "steps")}


def _task(size: object) -> dict[str, Any]:
    return {name: getattr(size, name) for name in size.__slots__}  # type: ignore[attr-defined]


def _over_seeds(name: str, values: list[float], form: str) -> dict[str, Any]:
    """Return a mean over seeds with its interval."""
    from training.evaluate.intervals import interval

    found = interval(values, derive(0, "miniature", form))
    return {name: found.mean, "interval": [found.low, found.high]}


def _against(values: dict[str, list[float]], forms: list[str], what: str) -> dict[str, Any]:
    """Return the differences of every form from the first one, paired by seed."""
    first = forms[0]
    return {
        f"{what}_minus_{first}": {
            form: _over_seeds("mean", [a - b for a, b in zip(values[form], values[first], strict=True)], form)
            for form in forms[1:]
        }
    }


def negotiation(forms: list[str], seeds: int, steps: int, conversations: int, folder: Path) -> dict[str, Any]:
    """Train and measure every form and seed; return what the arenas found, and each form's gain minus the first's.

    Seeds are the outer loop, so that a comparison that is broken off is complete for the seeds it has.
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
    found: dict[str, Any] = {}
    for form in forms:
        of_form = list(gains[form].values())
        found[form] = {"runs": rows[form], **(_over_seeds("gain", of_form, form) if of_form else {})}
    shared = [seed for seed in range(seeds) if all(seed in gains[form] for form in forms)]
    paired = {form: [gains[form][seed] for seed in shared] for form in forms}
    return {
        "task": {"game": "negotiation", "data": "items", "base": "tiny", "steps": steps or 60},
        "conversations": conversations,
        "seeds": seeds,
        "forms": found,
        "compared_seeds": shared,
        **(_against(paired, forms, "gain") if shared else {}),
    }


def _measured(form: str, seed: int, steps: int, conversations: int, folder: Path) -> dict[str, Any]:
    """Return what a form and seed came to: as its folder has it from an earlier call, else measured now."""
    wanted = {"steps_wanted": steps, "conversations": conversations, "method": FORMS[form]}
    if (known := folder / "row.json").is_file():
        row: dict[str, Any] = loads(known.read_text())
        if other := [name for name in wanted if row.get(name) != wanted[name]]:
            raise BadInput(f"{folder} was measured with another {other[0]}: choose a new directory", "--dir")
        return row
    for part in ("train", "eval"):  # broken off half-way
        shutil.rmtree(folder / part, ignore_errors=True)
    row = {**_train_and_measure(form, seed, steps, conversations, folder), **wanted}
    write_json(known, row)
    return row


def _train_and_measure(form: str, seed: int, steps: int, conversations: int, folder: Path) -> dict[str, Any]:
    """Run one form with one seed, then its arena against the cold start."""
    from training import config as configs
    from training import samples
    from training.evaluate import run as arena
    from training.learn import start, trainer
    from training.rundir import RunDir

    began = time.monotonic()
    shared = {
        "seed": seed,
        "model": {"base": "tiny", "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": "negotiation"},
        "data": {"path": str(samples.path("items"))},
        "sampling": {"max_tokens": 48},
    }
    warmup = min(5, steps // 4)
    learn = {
        "steps": steps,
        "lora": None,
        "lr": 3e-4,
        "critic_lr": 5e-4,
        "threads": 1,
        "save_every": steps,
        "critic_warmup": warmup,
    }
    rollout = {"scenarios": 8, "games": 2}
    wanted = {**shared, "learn": learn, "rollout": rollout, "method": {"name": "omar", **FORMS[form]}}
    run_dir = RunDir(folder / "train")
    trained = _unless_interrupted(trainer.run(start.start(configs.parse(wanted), run_dir, folder), run_dir))
    learned = time.monotonic()
    latest = run_dir.latest_checkpoint()
    row = {"seed": seed, "result": trained["result"], "why": trained["why"], "steps": trained["step"]}
    if latest is None:
        return {**row, "difference": None, "train_s": round(learned - began, 1)}
    measure = {"model": str(latest[1]), "opponent": "tiny", "conversations": conversations}
    eval_dir = RunDir(folder / "eval")
    against = configs.parse({**shared, "kind": "eval", "evaluate": measure})
    measured = _unless_interrupted(arena.run(start.start(against, eval_dir, folder), eval_dir))
    summary = measured.get("summary", {})
    return {
        **row,
        "arena": measured["result"],
        "difference": summary.get("difference", {}).get("return"),
        "agreement": summary.get("shared", {}).get("agreement"),
        "parse_rate": summary.get("a", {}).get("parse_rate"),
        "learned": _last_metrics(run_dir),
        "train_s": round(learned - began, 1),
        "arena_s": round(time.monotonic() - learned, 1),
    }


def _unless_interrupted(told: dict[str, Any]) -> dict[str, Any]:
    """Return what a run came to; raise for the Ctrl-C that it took for itself. A rule's stop is a result."""
    if told["exit"] == INTERRUPTED:
        raise KeyboardInterrupt
    return told


def _last_metrics(run_dir: Any) -> dict[str, float]:
    """Return the mean of some of the run's metrics over its last five steps."""
    from training.store import read_lines

    number = max(run_dir.attempts())
    lines = [line for line, _ in read_lines(run_dir.attempt(number).metrics)][-5:]
    names = ("reward", "agreement", "parse_rate", "entropy", "kl")
    return {
        name: fmean(line[name] for line in lines if name in line) for name in names if any(name in x for x in lines)
    }


def show(result: dict[str, Any]) -> str:
    """Return one line a form."""
    rows = []
    for form, found in result["forms"].items():
        mean = found.get("mean", found.get("gain"))
        low, high = found.get("interval", (float("nan"), float("nan")))
        rows.append(f"{form:<14} {mean if mean is not None else float('nan'):>10.3f}   [{low:.3f}, {high:.3f}]")
    return "\n".join(rows)
