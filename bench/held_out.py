"""Transfer to held-out games in miniature: three specialists and one generalist by MARS, over seeds.

All runs begin from one small model, pretrained on scripted games of all six; of the held-out games it has seen only
random play. The specialists learn by self-play in one of three games each, the generalist in all of them; Connect Four,
Leduc poker and the larger Hanabi are never played in training. The last checkpoints and the starting model are
evaluated on tasks of `training/suites/mars.toml` (see `SKIPPED`), and in both poker games by their NashConv, because
there chance outweighs skill in a hundred games.
"""

from __future__ import annotations

import sys
import tomllib
from argparse import Namespace
from pathlib import Path
from typing import Any

from bench.rows import UNWATCHED, number_in, over_seeds, run, stored_row
from bench.starts import Start, prepare
from bench.strategic import exact
from training.errors import BadInput

TRAINED = ("tic_tac_toe", "kuhn_poker", "hanabi")
"""The games of training; a specialist has the name of its game."""
GENERALIST = "generalist"
START = Start("tic-tac-toe-1", ("scripted", "random"), 1500, {"vocabulary": 1600, "hidden": 96, "heads": 3, "mlp": 240})
ALSO = (
    Start("kuhn-poker-1", ("arbitrary",), 2000),
    Start("hanabi-mini-1", ("scripted", "random"), 1200),
    Start("connect-four-1", ("random",), 250),
    Start("leduc-poker-1", ("random",), 1000),
    Start("hanabi-simple-4", ("random",), 500),
)
"""What the start is pretrained on; in the games that are held out it sees random play alone."""
SUITE = Path("training/suites/mars.toml")
SKIPPED = (("tic_tac_toe", "mcts:1000"), ("connect_four", "mcts:100"))
"""Tasks of the suite that are left out, besides the exact best responses: the game is measured by a weaker opponent."""
POKER = ("kuhn_poker", "leduc_poker")
"""Games whose NashConv is measured."""
SAMPLING = {"max_tokens": 24, "constrain": True}
STEPS = 40


def main(arguments: Namespace) -> dict[str, Any]:
    """Train and measure all models of each seed; an interrupted command leaves complete seeds."""
    import torch

    torch.set_num_threads(1)
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    folder, steps = arguments.dir.absolute(), arguments.steps or STEPS
    base = prepare(START, folder / "start", ALSO)
    before = stored_row(folder / "before", {}, lambda: measure(base, 0, folder / "before" / "eval"))
    models = [*TRAINED, GENERALIST]
    rows: dict[str, list[dict[str, Any]]] = {model: [] for model in models}
    for seed in range(arguments.seeds):
        for model in models:
            place = folder / f"{model}-{seed}"
            wanted = {"model": model, "seed": seed, "steps_wanted": steps}
            rows[model].append(
                stored_row(place, wanted, lambda: _trained(model, base, seed, steps, place))  # noqa: B023
            )
            print(f"{model}, seed {seed}: {rows[model][-1]['after']}", file=sys.stderr)
    return {
        "before": before,
        "models": rows,
        "gains": {
            **{task: _gains(rows, before, "after", task, "normalised", "mean") for task in before["after"]},
            **{f"{game}, NashConv": _gains(rows, before, "nash_conv", game) for game in POKER},
        },
    }


def _gains(rows: dict[str, list[dict[str, Any]]], before: dict[str, Any], *where: str) -> dict[str, dict[str, Any]]:
    """Return each model's change from the start in the number that stands at `where` in a row, over seeds."""
    start = number_in(before, *where)
    return {model: over_seeds("gain", [number_in(row, *where) - start for row in runs]) for model, runs in rows.items()}


def configuration(model: str, base: Path, seed: int, steps: int) -> dict[str, Any]:
    """Return the configuration of a run: self-play in one game, or in all three with as many games of each."""
    games = TRAINED if model == GENERALIST else (model,)
    return {
        "seed": seed,
        "model": {"base": str(base), "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": games[0]},
        "mixture": [{"game": game} for game in games] if model == GENERALIST else [],
        "data": {"limit": 1},
        "sampling": SAMPLING,
        "rollout": {"on_refused": "forfeit", "scenarios": 64 * len(games)},
        "method": {"name": "mars"},
        "reward": {"scale": "span", "forfeit": "nothing", "malformed": -4.0},
        "learn": {
            "steps": steps,
            "epochs": 2,
            "lr": 3e-4,
            "lora": None,
            "schedule": "linear",
            "aggregate": "player_mean",
            "dual_clip": 1.4,
            "kl_coef": 0.02,
            "ent_coef": 0.05,
            "threads": 1,
            "save_every": steps,
        },
        "stop": UNWATCHED,
    }


def tasks() -> list[dict[str, Any]]:
    """Return the tasks of the suite that are played."""
    stated: list[dict[str, Any]] = tomllib.loads(SUITE.read_text())["suite"]["tasks"]
    return [
        task
        for task in stated
        if task["opponent"] != "best_response" and (task["game"], task["opponent"]) not in SKIPPED
    ]


def measure(model: Path, seed: int, folder: Path, games: int = 100) -> dict[str, dict[str, Any]]:
    """Return the mean over seats of every task, raw and normalised, from `games` games at each seat; and NashConvs."""
    wanted = {
        "kind": "suite",
        "name": "held-out",
        "seed": seed,
        "model": {"base": str(model), "device": "cpu"},
        "engine": {"name": "transformers"},
        "sampling": SAMPLING,
        "rollout": {"on_refused": "forfeit"},
        "suite": {"games": games, "tasks": tasks()},
    }
    report, _ = run(wanted, folder)
    rows = {}
    for row in report["rows"]:
        name = f"{row['title']}, {row['opponent']}"
        if row["seat"] is None or name not in rows:
            rows[name] = {key: row[key] for key in ("raw", "normalised", "held_out", "played")}
    return {"after": rows, "nash_conv": {game: exact(game, model)["nash_conv"] for game in POKER}}


def _trained(model: str, base: Path, seed: int, steps: int, folder: Path) -> dict[str, Any]:
    """Train one model with one seed and measure its last checkpoint."""
    trained, run_dir = run(configuration(model, base, seed, steps), folder / "train")
    latest = run_dir.latest_checkpoint()
    if latest is None:
        raise AssertionError(f"{model}, seed {seed}: the run has no checkpoint")
    return {**measure(latest[1], seed, folder / "eval"), "train_s": trained["wall_s"], "cpu_s": trained["cpu_s"]}


def show(result: dict[str, Any]) -> str:
    """Return one line per number and model: its change from the start; normalised points but for NashConv."""
    lines = []
    for number, gains in result["gains"].items():
        lines.append(number)
        for model, gain in gains.items():
            low, high = gain.get("interval", (float("nan"), float("nan")))
            lines.append(f"  {model:<14} {gain['gain']:+8.2f}   [{low:+.2f}, {high:+.2f}] n = {gain['n']}")
    return "\n".join(lines)
