"""MARS in miniature: small models that learn Kuhn poker and mini Hanabi by self-play, tic-tac-toe against MCTS.

Each run begins from the same pretrained start (`bench.starts`) and is measured before and after, over seeds: Kuhn poker
by the NashConv of the policy, tic-tac-toe by the mean return against Monte Carlo tree search in both seats, Hanabi by
the mean return of self-play. `FORMS` are the forms of credit, and self-play replaced by a fixed opponent. The last
checkpoint is evaluated, not the best one.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.forms import FORMS as CREDIT
from bench.forms import chosen_forms
from bench.rows import UNWATCHED, against, metrics_of, over_seeds, run, stored_row
from bench.starts import BOARD, DECISIONS_FIRST, Start, prepare
from training.errors import BadInput

ABLATIONS = ("whole_game", "all_players", "normalised_first", "player_turn", "role_ema")
FORMS: dict[str, dict[str, Any]] = {
    "full": CREDIT["player"],
    **{name: CREDIT[name] for name in ABLATIONS},
    "fixed_opponent": {},
}
"""Settings of the method by form. `fixed_opponent` replaces self-play by the task's `opponent`, and plays twice as many
games, since one seat of each learns."""


SAMPLING = {"max_tokens": 24}
"""Of tasks that state no other."""


@dataclass(frozen=True, slots=True)
class Task:
    """One game in miniature. `measure` maps a model's folder to metrics; the first is the one that is reported.

    `steps` is the length of a run where a single form is measured, by default `form`; `compared` that of each run where
    several are. `phases` are shares of these, each with its settings.
    """

    game: str
    start: Start
    opponent: str
    steps: int
    compared: int
    measure: Callable[[Path, int], dict[str, float]]
    config: dict[str, Any] = field(default_factory=dict)
    phases: tuple[tuple[float, dict[str, Any]], ...] = ()
    form: str = "full"


def exact(game: str, folder: Path) -> dict[str, float]:
    """Return the NashConv of a model that draws among the legal replies at temperature 1, and the first seat's mean."""
    from training.evaluate import nashconv

    measured = nashconv.run(
        game,
        str(folder),
        engine="transformers",
        device="cpu",
        dtype="float32",
        on_progress=lambda *_: None,
        constrained=1.0,
    )
    return {name: measured[name] for name in ("nash_conv", "value")}


def _nash_conv(folder: Path, seed: int) -> dict[str, float]:
    return exact("kuhn_poker", folder)


def _against_search(folder: Path, seed: int) -> dict[str, float]:
    """Return the mean return against MCTS with 100 simulations, over both seats and in each, from 200 games a seat."""
    by_seat = [_mean_return(TASKS["tictactoe"], folder, "mcts:100", seat, 200, seed) for seat in (0, 1)]
    return {"return": fmean(by_seat), "first": by_seat[0], "second": by_seat[1]}


def _self_play(folder: Path, seed: int) -> dict[str, float]:
    """Return the mean points of 400 games against itself."""
    return {"points": _mean_return(TASKS["hanabi"], folder, "", 0, 400, seed)}


def _mean_return(task: Task, folder: Path, opponent: str, seat: int, games: int, seed: int) -> float:
    """Return the model's mean return in a seat against an opponent, "" = itself; a refused reply forfeits."""
    from contextlib import aclosing

    from training.players.contestants import ContestantPool
    from training.rollout import Job, RolloutPolicy, collect
    from training.run_sections import EngineSection, SamplingSection
    from training.seeding import rng

    async def played() -> float:
        sampling = SamplingSection.from_dict(task.config.get("sampling", SAMPLING))
        pool = ContestantPool(EngineSection(name="transformers"), sampling, "cpu")
        async with aclosing(pool):
            policies = {"model": pool.open(str(folder), "model").player}
            if opponent:
                policies["opponent"] = pool.open(opponent, "opponent").player
            names = tuple("model" if not opponent or each == seat else "opponent" for each in (0, 1))
            scenario = task.start.scenario
            jobs = [
                Job(number, scenario.with_seed(rng(seed, "measure", number).getrandbits(62)), names)
                for number in range(games)
            ]
            rules = RolloutPolicy(seed=seed, on_refused="forfeit")
            episodes = await collect(jobs, policies, lanes=64, rules=rules)
        if broken := [each.error for each in episodes if each.error]:
            raise AssertionError(f"{len(broken)} games ended in errors: {broken[0]}")
        return fmean(float(each.returns[seat] or 0.0) for each in episodes)

    return asyncio.run(played())


TASKS: dict[str, Task] = {
    "kuhn": Task(
        "kuhn_poker",
        Start("kuhn-poker-1", ("arbitrary",), 6000, stages=DECISIONS_FIRST),
        "nash",
        150,
        50,
        _nash_conv,
        {
            "sampling": {"max_tokens": 24, "constrain": True},
            "rollout": {"scenarios": 192},
            "learn": {
                "lr": 3e-4,
                "epochs": 2,
                "schedule": "constant",
                "kl_coef": 0.02,
                "ent_coef": 0.3,
                "aggregate": "token_mean",
            },
        },
        (
            (0.6, {"name": "wide"}),
            (0.4, {"name": "narrow", "learn": {"lr": 2e-4, "ent_coef": 0.2, "schedule": "linear"}}),
        ),
    ),
    "tictactoe": Task(
        "tic_tac_toe",
        Start("tic-tac-toe-1", ("scripted", "random"), 2000, {"vocabulary": 1600, "groups": 2}, stages=BOARD),
        "mcts:100",
        60,
        60,
        _against_search,
        {
            "sampling": {"max_tokens": 24, "constrain": True},
            "rollout": {"scenarios": 64},
            "learn": {"lr": 5e-4, "epochs": 2, "kl_coef": 0.02, "ent_coef": 0.05},
        },
        form="fixed_opponent",
    ),
    "hanabi": Task(
        "hanabi",
        Start("hanabi-mini-1", ("scripted", "random"), 1500, {"vocabulary": 1600}),
        "scripted",
        50,
        30,
        _self_play,
        {"rollout": {"scenarios": 64}, "learn": {"lr": 3e-4, "kl_coef": 0.02}},
    ),
}


def main(arguments: Namespace) -> dict[str, Any]:
    """Train and measure every form and seed, seed by seed, so that an interrupted comparison leaves complete seeds."""
    import torch

    torch.set_num_threads(1)
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    task, folder = TASKS[arguments.part], arguments.dir.absolute()
    forms = chosen_forms(arguments.forms, FORMS, default=[task.form])
    steps = arguments.steps or (task.compared if len(forms) > 1 else task.steps)
    base = prepare(task.start, folder / "start")
    before = stored_row(folder / "before", {}, lambda: task.measure(base, 0))
    rows: dict[str, list[dict[str, Any]]] = {form: [] for form in forms}
    for seed in range(arguments.seeds):
        for form in forms:
            wanted = {"form": form, "seed": seed, "steps_wanted": steps}
            place = folder / f"{form}-{seed}"
            row = stored_row(place, wanted, lambda: _trained(task, base, form, seed, steps, place))  # noqa: B023
            print(f"{form}, seed {seed}: {row['after']}", file=sys.stderr)
            rows[form].append(row)
    return _summary(task, forms, rows, before, steps)


def configuration(task: Task, base: Path, form: str, seed: int, steps: int) -> dict[str, Any]:
    """Return the configuration of a run."""
    fixed = form == "fixed_opponent"
    opponents = [{"source": task.opponent}] if fixed else []
    games = task.config["rollout"]["scenarios"] * (2 if fixed else 1)
    learn = {
        "steps": steps,
        "lora": None,
        "schedule": "linear",
        "aggregate": "player_mean",
        "dual_clip": 1.4,
        "threads": 1,
        "save_every": steps,
        **task.config["learn"],
    }
    return {
        "seed": seed,
        "model": {"base": str(base), "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": task.game},
        "data": {"limit": 1},
        "sampling": task.config.get("sampling", SAMPLING),
        "rollout": {"on_refused": "forfeit", **task.config["rollout"], "scenarios": games},
        "opponents": opponents,
        "method": {"name": "mars", **FORMS[form]},
        "reward": {"scale": "span", "forfeit": "nothing", "malformed": -4.0, "well_formed": 0.05},
        "learn": learn,
        "phases": [
            {**settings, "steps": length}
            for (_, settings), length in zip(task.phases, _lengths(task, steps), strict=True)
        ],
        "stop": UNWATCHED,
    }


def _lengths(task: Task, steps: int) -> list[int]:
    """Return the steps of each phase, `steps` in all."""
    ends = [round(steps * share) for share in accumulate(share for share, _ in task.phases)]
    return [end - begin for begin, end in pairwise([0, *ends])]


def _trained(task: Task, base: Path, form: str, seed: int, steps: int, folder: Path) -> dict[str, Any]:
    """Train one form with one seed and measure its last checkpoint."""
    trained, run_dir = run(configuration(task, base, form, seed, steps), folder / "train")
    latest = run_dir.latest_checkpoint()
    last = metrics_of(run_dir)[-5:]
    names = ("reward", "parse_rate", "entropy", "kl")
    return {
        "result": trained["result"],
        "why": trained["why"],
        "steps": trained["step"],
        "after": task.measure(latest[1], seed) if latest else None,
        "learned": {name: fmean(line[name] for line in last if name in line) for name in names},
        "train_s": trained["wall_s"],
        "cpu_s": trained["cpu_s"],
    }


def _summary(
    task: Task, forms: list[str], rows: dict[str, list[dict[str, Any]]], before: dict[str, Any], steps: int
) -> dict[str, Any]:
    """Return all rows with means over seeds, and each form's difference from the first one, paired by seed."""
    main_number = next(iter(before))
    values = {form: [row["after"][main_number] for row in rows[form] if row["after"] is not None] for form in forms}
    complete = all(len(values[form]) == len(rows[form]) for form in forms)
    return {
        "task": {
            "game": task.game,
            "start": task.start.sample,
            "steps": steps,
            "config": task.config,
            "phases": [{"share": share, **settings} for share, settings in task.phases],
        },
        "before": before,
        "forms": {form: {"runs": rows[form], **over_seeds(main_number, values[form])} for form in forms},
        **(against(values, forms, main_number) if complete and len(forms) > 1 else {}),
    }


def show(result: dict[str, Any]) -> str:
    """Return the start's number, and one line per form."""
    number = next(iter(result["before"]))
    lines = [f"start: {number} {result['before'][number]:.3f}"]
    for form, row in result["forms"].items():
        low, high = row.get("interval", (float("nan"), float("nan")))
        lines.append(f"{form:<18} {row[number]:8.3f}   [{low:.3f}, {high:.3f}] n = {row['n']}")
    return "\n".join(lines)
