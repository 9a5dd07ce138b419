"""Calibration by itself: the base model of a configuration, then another model or a checkpoint of a run.

With a folder, `calibration.json` has the evaluations and all conditions, `questions.jsonl` a row for each question.
Raises `BadInput` before a model is loaded, for what cannot be measured, and the errors of the engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training import bases, players
from training import config as configs
from training.attempts.start import reopen
from training.config import RunConfig
from training.errors import BadInput
from training.evaluate.calibration import curves
from training.evaluate.calibration.calibrator import Calibrator, OnGame
from training.evaluate.calibration.measure import Agent
from training.evaluate.calibration.report import WORTH, Evaluation, Row
from training.evaluate.intervals import METHOD
from training.evaluate.run import versions
from training.learn.context import pick_device
from training.players.contestants import Contestant, ContestantPool, check, longest_window, unplaced, window_of
from training.rundir import RunDir
from training.store import append_line, sha256, write_json

RESULT, ROWS = "calibration.json", "questions.jsonl"
BASE, MODEL = "base", "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured: a configuration file or run directory, the model ("" = the run's newest checkpoint, or the base
    model alone) or the step of a checkpoint, and the folder of the result, if there is to be one.
    """

    source: Path
    model: str = ""
    step: int | None = None
    folder: Path | None = None


def run(plan: Plan, on_game: OnGame = lambda done, of: None) -> dict[str, Any]:
    """Measure; return what `calibration.json` holds."""
    began = time.monotonic()
    config, run_dir = _configuration(plan.source)
    model = _model(plan, config, run_dir)
    base = config.calibration.base or config.model.base
    check_local(model, "--model")
    check_local(base, "calibration.base")
    calibrator = Calibrator(config, run_dir, on_game=on_game)
    if plan.folder is not None:
        _check_folder(plan.folder)
    evaluations, rows, facts = asyncio.run(_measured(calibrator, base, model))
    result = {
        "version": 1,
        "evaluations": [each.to_dict() for each in evaluations],
        "conditions": {
            "command": f"python -m training calibrate {plan.source.name} --model '{unplaced(model)}'",
            "models": facts,
            **_conditions(config, run_dir),
            "seconds": round(time.monotonic() - began, 1),
        },
    }
    if plan.folder is not None:
        _write(plan.folder, result, rows)
    return result


def check_local(source: str, where: str) -> None:
    """Raise `BadInput` naming `where` unless the probabilities of a model are known; this loads no model."""
    if players.known(source) or "://" in source:
        raise BadInput(f"{source[:200]!r} is no local model, whose probabilities are known", where)
    try:
        check(source)
    except BadInput as error:
        raise BadInput(error.why, where) from error


def _configuration(source: Path) -> tuple[RunConfig, RunDir]:
    """Return the configuration of a file or run directory, resolved, and what its relative paths start from."""
    if source.is_dir():
        run_dir = RunDir(source.absolute())
        config = reopen(run_dir)
    else:
        run_dir = RunDir(source.absolute().parent)
        config = configs.resolve(configs.load(source), run_dir.root)
    if not config.calibration.sets:
        raise BadInput(
            "it names no question sets to measure on: add [[calibration.sets]]", f"{source}: calibration.sets"
        )
    return config, run_dir


def _model(plan: Plan, config: RunConfig, run_dir: RunDir) -> str:
    """Return the source of the model that is measured beside the base model; the base model itself if there is none."""
    if plan.step is not None:
        if plan.model:
            raise BadInput("a step names a checkpoint of the run, so there is no other model", "--step")
        return str(run_dir.checkpoint_of(plan.step))
    if plan.model:
        return str(Path(plan.model).absolute()) if bases.is_folder(plan.model) else plan.model
    newest = run_dir.latest_checkpoint() if plan.source.is_dir() else None
    return str(newest[1]) if newest else config.calibration.base or config.model.base


def _check_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput("not an empty directory; choose another", str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"the folder cannot be made: {error.strerror}", str(folder)) from error


Measured = tuple[list[Evaluation], list[tuple[Evaluation, Row]], dict[str, Mapping[str, Any]]]


async def _measured(calibrator: Calibrator, base: str, model: str) -> Measured:
    """Return the evaluations of both models, the base model first, their rows, and what is known of each model."""
    config = calibrator.config
    device = pick_device(config.model.device).partition(":")[0]
    sources = {BASE: base} | ({} if bases.resolve(base).resolve() == bases.resolve(model).resolve() else {MODEL: model})
    evaluations: list[Evaluation] = []
    rows: list[tuple[Evaluation, Row]] = []
    async with aclosing(ContestantPool(config.engine, config.calibration_sampling, device)) as pool:
        contestants = {name: pool.open(source, name) for name, source in sources.items()}
        for name, source in sources.items():
            agent = agent_of(config, pool, source, contestants[name])
            step = bases.read_info(bases.resolve(source)).step if name == MODEL else 0
            evaluation, of_model = await calibrator.evaluate(agent, step, is_base=name == BASE)
            evaluations.append(evaluation)
            rows += [(evaluation, row) for row in of_model]
    return evaluations, rows, {name: each.facts for name, each in contestants.items()}


def agent_of(config: RunConfig, pool: ContestantPool, source: str, contestant: Contestant) -> Agent:
    """Return a local model that was opened as an agent that is asked."""
    engine, tokenizer = pool.scorer(source)
    window = window_of(config.engine, pool.sampling, longest_window(bases.resolve(source)))
    return Agent(contestant.title, engine, tokenizer, pool.sampling, window)


def _conditions(config: RunConfig, run_dir: RunDir) -> dict[str, Any]:
    """Return the other conditions that the numbers depend on."""
    section = config.calibration
    return {
        "sets": list(_sets(config, run_dir)),
        "search": config.search.to_dict(),
        "sampling": config.calibration_sampling.to_dict(),
        "draws": section.draws,
        "limited": section.limited,
        "seed": config.seed,
        "retries": config.rollout.retries,
        "on_refused": config.rollout.on_refused,
        "worth": WORTH,
        "intervals": f"{METHOD.replace('scenarios', 'questions')}; of areas {curves.METHOD}",
        "versions": versions(),
    }


def _sets(config: RunConfig, run_dir: RunDir) -> Iterator[dict[str, Any]]:
    for section in config.calibration.sets:
        path = run_dir.root / section.path if section.path else None
        file = {"file": path.name, "sha256": sha256(path)} if path else {"file": "samples of qa_society"}
        yield {"label": section.label, "tools": list(section.tools), "limit": section.limit, **file}


def _write(folder: Path, result: Mapping[str, Any], rows: list[tuple[Evaluation, Row]]) -> None:
    for evaluation, row in rows:
        append_line(folder / ROWS, {"step": evaluation.step, "model": evaluation.model, **row.to_dict()})
    write_json(folder / RESULT, result)
