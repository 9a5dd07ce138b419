"""Listening and speaking in miniature: small models that learn Among Us as the crew, by variant of the method.

For every seed the starting model (`bench.starts`) first learns to answer probes: that is π_L. RL, RL+L and RL+L+S begin
with it, and learn as three of the four crewmates, beside one crewmate and against an imposter that are π_L, frozen.
Every variant, the pretrained start (`base`) and π_L itself (`L`) among them, is measured in the same seats: its share
of won games, what its crewmates believe at the end of discussions, and what they say. The last checkpoint is evaluated,
not the best one.
"""

from __future__ import annotations

import asyncio
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import asked
from bench.deduction import numbers
from bench.forms import chosen_forms
from bench.rows import UNWATCHED, against, metrics_of, over_seeds, run, stored_row
from bench.starts import Start, prepare
from training.dataset import DatasetLine
from training.errors import BadInput
from training.games import make
from training.learn.tiny.pretrain import Stage
from training.records import Episode, Scenario, Seat
from training.rollout import Job, RolloutPolicy, collect
from training.seeding import rng

VARIANTS = ("RL", "RL+L", "RL+L+S", "L", "base")
"""What is compared, each to the first."""
SETTINGS = {
    "task_time": 1,
    "cooldown": 2,
    "wait": 1,
    "rounds": 8,
    "discussion": 1,
    "words": 8,
    "max_chars": 60,
}
"""A short game: every decision takes one round, and a meeting has one message from everybody."""
NAMES = ("Gus", "Ivo", "Kim", "Leo", "Mia")
START = Start(
    "ship-2x2-4",
    ("witness_talk",),
    2000,
    {"context": 0.05, "groups": 2},
    file="among_us",
    settings=SETTINGS,
    words=NAMES,
    stages=(
        Stage(asked.excerpts, context=0.0, sft={"tokens_per_batch": 4096, "lr": 4e-3, "warmup": 0.2, "epochs": 3}),
        Stage(asked.deeds, context=0.0, sft={"tokens_per_batch": 4096, "lr": 2e-3}),
        Stage(asked.games, sft={"tokens_per_batch": 2560, "lr": 2e-3}),
        Stage(asked.talk, context=0.0, sft={"tokens_per_batch": 4096, "lr": 2e-3, "epochs": 2}),
        Stage(asked.everything, sft={"tokens_per_batch": 4096, "lr": 1.5e-3}),
    ),
)
LISTENING_STEPS, STEPS = 8, 30
"""Training steps of π_L and of the variants after it."""
GAMES = 32
"""Games per training step."""
MEASURED = 400
"""Games in which a variant is measured."""
SAMPLING = {"max_tokens": 12, "constrain": True}
LEARN = {"lora": None, "lr": 8e-4, "threads": 1, "tokens_per_batch": 8192, "tokens_per_update": 16000}
ACTING = {"critic_warmup": 2, "clip": 0.2, "kl": "k1", "kl_coef": 0.2}
"""Without the preset's entropy bonus, whose share at the tokens of messages makes them degenerate in a small model."""
LISTENING = {"lr": 2e-4, "kl": "none", "kl_measured": False}
METHOD = {"listening": 0.1}
"""Of the variants after π_L. With a weight of 1 the gradient of the listening loss is ten times that of PPO, which then
learns little under joint gradient clipping."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Train and measure every variant and seed, seed by seed, so that an interrupted call leaves complete seeds."""
    import torch

    torch.set_num_threads(1)
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    folder = arguments.dir.absolute()
    forms = chosen_forms(arguments.forms, VARIANTS)
    steps = arguments.steps or STEPS
    start = prepare(START, folder / "start")
    rows: dict[str, list[dict[str, Any]]] = {form: [] for form in forms}
    for seed in range(arguments.seeds):
        listener = _listener(start, seed, folder)
        for form in forms:
            place = folder / f"{form}-{seed}"
            wanted = {"form": form, "seed": seed, "steps_wanted": steps}
            row = stored_row(place, wanted, partial(_row, form, seed, steps, start, listener, place))
            print(f"{form}, seed {seed}: {row['after']}", file=sys.stderr)
            rows[form].append(row)
    return _summary(forms, rows, steps)


def _listener(start: Path, seed: int, folder: Path) -> Path:
    """Return the checkpoint of π_L of a seed; it is trained on the first call."""
    place = folder / f"listen-{seed}"
    stored_row(place, {"seed": seed}, partial(_trained, "L", start, seed, LISTENING_STEPS, place))
    return _latest(place)


def _latest(place: Path) -> Path:
    from training.rundir import RunDir

    latest = RunDir(place / "train").latest_checkpoint()
    if latest is None:
        raise AssertionError(f"the run in {place} has no checkpoint")
    return latest[1]


def _row(form: str, seed: int, steps: int, start: Path, listener: Path, place: Path) -> dict[str, Any]:
    """Return the numbers of a variant, which is trained first where it must be."""
    models = {"base": start, "L": listener}
    trained = {} if form in models else _trained(form, listener, seed, steps, place)
    began = time.process_time()
    crew = models.get(form) or _latest(place)
    after = numbers(played(crew, listener, MEASURED, seed))
    return {**trained, "after": after, "measured_cpu_s": round(time.process_time() - began, 1)}


def configuration(variant: str, base: Path, seed: int, steps: int, starts: Path) -> dict[str, Any]:
    """Return the configuration of a run that trains the model in `base` on the scenarios in `starts`."""
    alone = variant == "L"
    return {
        "seed": seed,
        "model": {"base": str(base), "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": "among_us"},
        "data": {"path": str(starts)},
        "sampling": SAMPLING,
        "rollout": {"scenarios": GAMES},
        "opponents": [] if alone else [{"source": "start", "learner": ["crewmate"], "partner": "start"}],
        "method": {"name": "listen_speak", "variant": variant, **({} if alone else METHOD)},
        "reward": {"scale": "raw"},
        "learn": {**LEARN, **(LISTENING if alone else ACTING), "steps": steps, "save_every": steps},
        "stop": UNWATCHED,
    }


def _trained(variant: str, base: Path, seed: int, steps: int, place: Path) -> dict[str, Any]:
    """Train a variant with a seed; return its result, and its metrics as means of the last five steps."""
    place.mkdir(parents=True, exist_ok=True)
    starts = place / "starts.jsonl"
    starts.write_text(DatasetLine(scenario=START.scenario).dumps() + "\n", "utf-8")
    trained, run_dir = run(configuration(variant, base, seed, steps, starts), place / "train")
    last = metrics_of(run_dir)[-5:]
    names = ("reward", "belief", "entropy", "kl", "silent/crewmate", "waits/crewmate")
    return {
        "result": trained["result"],
        "why": trained["why"],
        "steps": trained["step"],
        "learned": {name: fmean(line[name] for line in last) for name in names if all(name in line for line in last)},
        "train_s": trained["wall_s"],
        "cpu_s": trained["cpu_s"],
    }


def played(crew: Path, others: Path, games: int, seed: int) -> list[tuple[Episode, frozenset[Seat]]]:
    """Return games of one model as three crewmates with another as the fourth and the imposter, and the first's seats.

    The same seed gives the same deals and seats, whatever the models.
    """
    from training.players.contestants import ContestantPool
    from training.run_sections import EngineSection, SamplingSection

    jobs = [_job(START.scenario, number, seed) for number in range(games)]

    async def play() -> list[Episode]:
        pool = ContestantPool(EngineSection(name="transformers"), SamplingSection.from_dict(SAMPLING), "cpu")
        async with aclosing(pool):
            policies = {name: pool.open(str(path), name).player for name, path in (("crew", crew), ("others", others))}
            return await collect(jobs, policies, lanes=64, rules=RolloutPolicy(seed=seed, probes=True))

    episodes = asyncio.run(play())
    if broken := [each.error for each in episodes if each.error]:
        raise AssertionError(f"{len(broken)} games ended in errors: {broken[0]}")
    learner = [frozenset(seat for seat, name in enumerate(job.policies) if name == "crew") for job in jobs]
    return list(zip(episodes, learner, strict=True))


def _job(scenario: Scenario, number: int, seed: int) -> Job:
    dealt = scenario.with_seed(rng(seed, "measure", number).getrandbits(62))
    crew = [seat for seat, role in enumerate(make(dealt).roles()) if role == "crewmate"]
    crew.remove(rng(seed, "partner", number).choice(crew))
    return Job(number, dealt, tuple("crew" if seat in crew else "others" for seat in range(len(dealt.seats))))


def _summary(forms: Sequence[str], rows: dict[str, list[dict[str, Any]]], steps: int) -> dict[str, Any]:
    """Return all rows with means over seeds, and each variant's difference from the first, paired by seed."""
    won = {form: [row["after"]["won"] for row in rows[form]] for form in forms}
    return {
        "task": {
            "game": "among_us",
            "settings": START.scenario.settings,
            "start_games": START.games,
            "games": GAMES,
            "measured": MEASURED,
            "listening": {"steps": LISTENING_STEPS, **LEARN, **LISTENING},
            "acting": {"steps": steps, **LEARN, **ACTING},
        },
        "forms": {form: {"runs": rows[form], **over_seeds("won", won[form])} for form in forms},
        **(against(won, list(forms), "won") if len(forms) > 1 else {}),
    }


def show(result: dict[str, Any]) -> str:
    """Return one line per variant."""
    lines = []
    for form, row in result["forms"].items():
        low, high = row.get("interval", (float("nan"), float("nan")))
        lines.append(f"{form:<10} won {row['won']:.3f}   [{low:.3f}, {high:.3f}] n = {row['n']}")
    return "\n".join(lines)
