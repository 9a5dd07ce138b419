"""A lineage over seeds: a cold start on conversations, self-play from it, and a head-to-head of both on other starts.

Each stage is `python -m training run` in a process of its own with one thread: the preset's cold start in `cold`, the
preset's self-play in `train`, the head-to-head in `eval`, and in `train-NAME` the same self-play with another critic of
`bench.baselines`. Without datasets, Werewolf is played in the villages of the miniature. The same command continues
where it was interrupted. A row has the curves of every self-play, and by scenario the numbers of the head-to-head; a
stage that fails is reported, and what needs it is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Semaphore
from typing import Any

from bench import werewolf_setup
from bench.baselines import FORMS
from bench.rows import INTERRUPTED, metrics_of
from training.config import CONFIGS, load
from training.errors import BadInput
from training.rundir import RunDir
from training.store import loads, sha256, write_json

Config = dict[str, Any]
Stage = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """The presets' file in `configs/sft` and `configs/omar`, what the head-to-head adds, and the reported numbers."""

    preset: str
    evaluate: Mapping[str, Any]
    curves: tuple[str, ...]
    compared: tuple[str, ...]
    shared: tuple[str, ...] = ()
    limit: int = 0
    """Scenarios of the cold start's dataset, 0 = all."""
    sections: tuple[str, ...] = field(default=("engine", "sampling", "game", "rollout"))
    """Sections of the preset that the head-to-head repeats: it is played under the rules of training."""


WEREWOLF_SIZES = (60, 200, 60)
"""Scripted games of the wolves' cold start, starts of their self-play, and starts of their head-to-head."""
LEARNED = ("reward", "parse_rate", "entropy", "kl", "explained_variance_turn", "value_r2_turn", "advantage_mean")
TASKS = {
    "negotiation": Task(
        "negotiation.toml",
        {"conversations": 120},
        (*LEARNED, "agreement", "joint_points", "step_s"),
        ("points", "parse_rate", "forfeits"),
        ("agreement",),
        limit=360,
    ),
    "werewolf": Task(
        "werewolf.toml",
        {"conversations": 240, "side": ["werewolf"]},
        (*LEARNED, "reward/werewolf", "step_s"),
        ("won/werewolf", "parse_rate"),
    ),
}


def main(arguments: Namespace) -> dict[str, Any]:
    """Return a row for each seed. `arguments.jobs` stages run at once; other critics follow when all seeds are done."""
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    files = _files(arguments)
    task = TASKS[arguments.task]
    critics = [name for name in arguments.critics.split(",") if name]
    if unknown := [name for name in critics if name not in FORMS]:
        raise BadInput(f"there is no critic {unknown[0]!r}; there are {', '.join(FORMS)}", "--critics")
    paths = {name: str(file.absolute()) for name, file in files.items()}
    folders = [arguments.dir.absolute() / f"seed-{seed}" for seed in range(arguments.seeds)]
    stages = Stages(Semaphore(arguments.jobs))
    with ThreadPoolExecutor(arguments.seeds) as pool:
        rows = list(pool.map(partial(stages.lineage, task, paths), range(arguments.seeds), folders))
        for critic in critics:
            further = pool.map(partial(stages.train, task, paths, critic), range(arguments.seeds), folders)
            for row, result in zip(rows, further, strict=True):
                row.update({f"train-{critic}": result} if result else {})
    return {
        "task": arguments.task,
        "data": {name: {"file": file.name, "sha256": sha256(file)} for name, file in files.items()},
        "config": _preset(task),
        "cold_start": {**_preset(task, "sft"), "data": {"limit": task.limit}},
        "runs": rows,
    }


def _files(arguments: Namespace) -> dict[str, Path]:
    """Return the named datasets; games of Werewolf are generated where none is named."""
    files = {"conversations": arguments.conversations, "starts": arguments.starts, "held_out": arguments.held_out}
    if arguments.task == "werewolf" and not any(files.values()):
        return werewolf_setup.write_lineage(arguments.dir / "data", *WEREWOLF_SIZES)
    for name, file in files.items():
        option = f"--{name.replace('_', '-')}"
        if file is None:
            raise BadInput("this task needs a dataset", option)
        if not file.is_file():
            raise BadInput("there is no such file", f"{option} {file}")
    return files


@dataclass(frozen=True, slots=True)
class Stages:
    """Runs stages, as many at once as `slots` allows."""

    slots: Semaphore

    def lineage(self, task: Task, files: Mapping[str, str], seed: int, folder: Path) -> dict[str, Any]:
        """Return a seed's row: the cold start, the self-play from it, and the head-to-head of both."""
        preset = _preset(task)
        cold_start = _preset(task, "sft")
        cold_start["data"] = {**cold_start["data"], "path": files["conversations"], "limit": task.limit}
        cold = self._stage("sft", cold_start, seed, folder / "cold")
        row: dict[str, Any] = {"seed": seed, "cold": _curves(folder / "cold", ("loss",)) | cold}
        if trained := self.train(task, files, "", seed, folder):
            row["train"] = trained
        start, end = _checkpoint(folder / "cold"), _checkpoint(folder / "train")
        if end is not None:
            versus = {name: preset[name] for name in task.sections} | {"data": {"path": files["held_out"]}}
            versus["model"] = {"base": start}  # the common opponent, where the task compares roles
            versus["evaluate"] = {"model": end, "opponent": start, "temperature": preset["sampling"]["temperature"]}
            versus["evaluate"] |= task.evaluate
            row["eval"] = self._stage("eval", versus, seed, folder / "eval")
            if row["eval"]["result"] == "succeeded":
                row["values"] = _values(folder / "eval", task)
        return row

    def train(self, task: Task, files: Mapping[str, str], critic: str, seed: int, folder: Path) -> Stage:
        """Return the self-play from a seed's cold start, with the preset's critic or another, if there is a start."""
        start, preset = _checkpoint(folder / "cold"), _preset(task)
        if start is None:
            return {}
        name = f"train-{critic}" if critic else "train"
        changed = {"learn": {**preset["learn"], **(FORMS[critic] if critic else {})}, "data": {"path": files["starts"]}}
        config = {**preset, "model": {**preset["model"], "base": start}, **changed}
        result = self._stage("train", config, seed, folder / name)
        return _curves(folder / name, task.curves) | result

    def _stage(self, kind: str, config: Config, seed: int, folder: Path) -> Stage:
        """Run a stage to its end, or read its result; return what it reported."""
        file = folder.with_name(f"{folder.name}.result.json")
        if file.is_file():
            result: Stage = loads(file.read_text())
        else:
            with self.slots:
                result = _run({**config, "kind": kind, "seed": seed}, folder)
            write_json(file, result)
        print(f"seed {seed}, {folder.name}: {result['result']} {result['why']}", file=sys.stderr)
        return result


def _preset(task: Task, stage: str = "omar") -> Config:
    return load(CONFIGS / stage / task.preset).to_dict()


def _checkpoint(folder: Path) -> str | None:
    newest = RunDir(folder).latest_checkpoint()
    return str(newest[1]) if newest else None


def _run(config: Config, folder: Path) -> Stage:
    """Start a run, or resume the one that the folder has; raise `KeyboardInterrupt` if Ctrl-C ended it."""
    if "learn" in config:
        config = {**config, "learn": {**config["learn"], "threads": 1}}
    if RunDir(folder).config.is_file():
        command = ["resume", str(folder)]
    else:
        file = folder.with_name(f"{folder.name}.json")
        write_json(file, config)
        command = ["run", str(file), "--dir", str(folder)]
    process = subprocess.run(
        [sys.executable, "-m", "training", *command, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the attempt's own log has it
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    if process.returncode == INTERRUPTED:
        raise KeyboardInterrupt
    if not process.stdout:
        raise BadInput(f"the run ended with {process.returncode} and no result; its log says why", str(folder))
    outcome = json.loads(process.stdout)
    return {name: outcome.get(name) for name in ("result", "why", "step", "summary", "verdict", "conditions")}


def _curves(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the numbers of every step, each with five significant digits."""
    lines = metrics_of(RunDir(folder)) if RunDir(folder).attempts() else []
    present = [name for name in names if any(name in line for line in lines)]
    return {"curves": {name: [_short(line.get(name)) for line in lines] for name in present}}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _values(folder: Path, task: Task) -> dict[str, Any]:
    """Return by scenario the numbers of a, of b and of the whole conversation."""
    run_dir = RunDir(folder)
    evaluation = loads((run_dir.attempt(max(run_dir.attempts())).root / "evaluation.json").read_text())
    pairs, shared = evaluation["by_scenario"], evaluation["shared_by_scenario"]
    scenarios = pairs[task.compared[0]]
    return {
        scenario: {
            side: {name: pairs[name][scenario][at] for name in task.compared} for at, side in enumerate(("a", "b"))
        }
        | {"shared": {name: shared[name][scenario] for name in task.shared}}
        for scenario in scenarios
    }


def show(result: dict[str, Any]) -> str:
    """Return each seed's verdict."""
    verdicts = {row["seed"]: row.get("eval", {}).get("verdict") for row in result["runs"]}
    return "\n".join(f"seed {seed}: {verdict or 'no result'}" for seed, verdict in verdicts.items())
