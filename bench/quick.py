"""The quick trial over seeds: each run ends with a head-to-head of its model against its own start.

Each seed is `python -m training run` of `training/configs/omar/quick.toml` with that seed, in a process of its own. A
row has the numbers of the head-to-head, the points by scenario, seconds, and what the watchdog read in every step. A
run that fails is reported, not left out. Each row is stored in `row.json` of its folder, and the same command continues
where it was interrupted.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from bench.rows import metrics_of, over_seeds, stored_row, unless_interrupted
from training.config import CONFIGS, load
from training.errors import BadInput
from training.learn.watchdog import NAMES
from training.rundir import RunDir
from training.store import write_json

CONFIG = CONFIGS / "omar" / "quick.toml"
KEY = "points"
SIDES = ("a", "b", "difference")
PAIRED = (KEY, "return", "parse_rate")


def main(arguments: Namespace) -> dict[str, Any]:
    """Return a row for each seed, the number of seeds with an interval above zero, and the mean lead over seeds."""
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    quick = load(CONFIG)
    runs = []
    for seed in range(arguments.seeds):
        config = quick.model_copy(update={"seed": seed}).to_dict()
        folder = arguments.dir.absolute() / f"seed-{seed}"
        row = stored_row(folder, {"config": config}, partial(_measured, config, folder))
        print(f"seed {seed}: {row['verdict'] or row['why']}", file=sys.stderr)
        runs.append({"seed": seed, **{name: value for name, value in row.items() if name != "config"}})
    leads = [run["difference"][KEY] for run in runs if run["difference"]]
    return {
        "config": quick.to_dict(),
        "seeds": arguments.seeds,
        "above_zero": sum(lead["low"] > 0 for lead in leads),
        **(over_seeds("lead", [lead["mean"] for lead in leads]) if leads else {}),
        "runs": runs,
    }


def _measured(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run one seed; return its row. Seconds are of the whole process, its start included."""
    write_json(folder / "config.json", config)
    run_dir = RunDir(folder / "train")
    file, root = str(folder / "config.json"), str(run_dir.root)
    command = [sys.executable, "-m", "training", "run", file, "--dir", root, "--json"]
    began, used = time.monotonic(), _cpu()
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, check=False)
    seconds = {"wall": round(time.monotonic() - began, 1), "cpu": round(_cpu() - used, 1)}
    result = unless_interrupted({**json.loads(process.stdout), "exit": process.returncode})
    summary = result.get("summary", {})
    lines = metrics_of(run_dir)
    columns = [name for name in NAMES if any(name in line for line in lines)]
    return {
        "result": result["result"],
        "why": result["why"],
        "steps": result["step"],
        "verdict": result.get("verdict", ""),
        **{side: {name: summary[side][name] for name in PAIRED} if summary else {} for side in SIDES},
        "agreement": summary.get("shared", {}).get("agreement"),
        "by_scenario": result.get("by_scenario", {}).get(KEY, {}),
        "seconds": {**seconds, "head_to_head": result.get("conditions", {}).get("seconds")},
        "watched": {"columns": columns, "rows": [[_short(line.get(name)) for name in columns] for line in lines]},
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def show(result: dict[str, Any]) -> str:
    """Return each seed's verdict, then how many have their interval above zero."""
    lines = [f"seed {run['seed']}: {run['verdict'] or run['why']}" for run in result["runs"]]
    return "\n".join([*lines, f"interval above zero: {result['above_zero']} of {result['seeds']} seeds"])
