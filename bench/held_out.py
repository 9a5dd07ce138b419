"""Transfer to held-out games in miniature: three specialists and one generalist by MARS, over seeds.

All runs begin from one small model, pretrained on scripted games of all six; of the held-out games it has seen only
random play. The specialists learn in one of three games each, the generalist in all of them; Connect Four, Leduc poker
and the larger Hanabi are never played in training. The specialist of tic-tac-toe plays against tree search, as in
`bench.strategic`, the others against themselves. The last checkpoints and the starting model are evaluated on tasks of
`training/suites/mars.toml` (see `SKIPPED`), and in both poker games by their NashConv, because there chance outweighs
skill in a hundred games.
"""

from __future__ import annotations

import sys
import tomllib
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.excerpts import decisions
from bench.rows import UNWATCHED, number_in, over_seeds, run, stored_row
from bench.starts import Start, prepare, scripted
from bench.strategic import exact
from training.errors import BadInput
from training.learn.tiny.pretrain import Stage
from training.text.conversations import traces

if TYPE_CHECKING:
    from training.records import Episode, Trace
    from training.text.template import ChatTokenizer

TRAINED = ("tic_tac_toe", "kuhn_poker", "hanabi")
"""The games of training; a specialist has the name of its game."""
GENERALIST = "generalist"


def _decisions(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return single decisions, in tic-tac-toe those of the script."""
    if episode.scenario.game == "tic_tac_toe":
        return decisions(episode, chat, window=window, lengths=(*(1,) * 6, 2, 0, 0), teacher=scripted)
    return decisions(episode, chat, window=window)


def _whole_games(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> Sequence[Trace]:
    """Return whole games, of tic-tac-toe none: half of its moves are random."""
    return () if episode.scenario.game == "tic_tac_toe" else traces(episode, chat, window=window)


def _repeated(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> Sequence[Trace]:
    """Return the decisions of tic-tac-toe again, which whole games overwrite, and a third of the whole games."""
    if episode.scenario.game == "tic_tac_toe":
        return _decisions(episode, chat, window=window)
    return () if episode.scenario.seed % 3 else _whole_games(episode, chat, window=window)


DECISIONS = Stage(_decisions, context=0.0, sft={"tokens_per_batch": 4096, "lr": 3e-3, "warmup": 0.1, "epochs": 2})
WHOLE_GAMES = Stage(_whole_games, sft={"tokens_per_batch": 1280, "lr": 2e-3})
REPEATED = Stage(_repeated, sft={"tokens_per_batch": 2560, "lr": 1e-3, "warmup": 0.1})
START = Start(
    "tic-tac-toe-1",
    ("scripted", "random"),
    2000,
    {"vocabulary": 2400, "hidden": 96, "heads": 3, "groups": 3, "mlp": 240},
    stages=(DECISIONS, WHOLE_GAMES, REPEATED),
)
ALSO = (
    Start("kuhn-poker-1", ("arbitrary",), 3000),
    Start("hanabi-mini-1", ("scripted", "random"), 1500),
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


@dataclass(frozen=True, slots=True)
class Training:
    """How one model is trained: the number of steps, the games of each, who opposes it (self-play if empty)."""

    steps: int
    games: int
    learn: dict[str, float]
    opponent: str = ""


TRAINING = {
    "tic_tac_toe": Training(60, 128, {"lr": 5e-4, "ent_coef": 0.05}, "mcts:100"),
    "kuhn_poker": Training(40, 128, {"lr": 3e-4, "ent_coef": 0.3}),
    "hanabi": Training(20, 48, {"lr": 3e-4}),
    GENERALIST: Training(20, 144, {"lr": 3e-4, "ent_coef": 0.05}),
}
"""By model. The specialists learn as in `bench.strategic`, but from fewer games."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Train and measure all models of each seed; an interrupted command leaves complete seeds."""
    import torch

    torch.set_num_threads(1)
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    folder = arguments.dir.absolute()
    base = prepare(START, folder / "start", ALSO)
    before = stored_row(folder / "before", {}, lambda: measure(base, 0, folder / "before" / "eval"))
    rows: dict[str, list[dict[str, Any]]] = {model: [] for model in TRAINING}
    for seed in range(arguments.seeds):
        for model, training in TRAINING.items():
            place, steps = folder / f"{model}-{seed}", arguments.steps or training.steps
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
    """Return the configuration of a run: one game, or all three with as many games of each."""
    training, games = TRAINING[model], TRAINED if model == GENERALIST else (model,)
    return {
        "seed": seed,
        "model": {"base": str(base), "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": games[0]},
        "mixture": [{"game": game} for game in games] if model == GENERALIST else [],
        "opponents": [{"source": training.opponent}] if training.opponent else [],
        "data": {"limit": 1},
        "sampling": SAMPLING,
        "rollout": {"on_refused": "forfeit", "scenarios": training.games},
        "method": {"name": "mars"},
        "reward": {"scale": "span", "forfeit": "nothing", "malformed": -4.0, "well_formed": 0.05},
        "learn": {
            "steps": steps,
            "epochs": 2,
            "lora": None,
            "schedule": "linear",
            "aggregate": "player_mean",
            "dual_clip": 1.4,
            "kl_coef": 0.02,
            "threads": 1,
            "save_every": steps,
            **training.learn,
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
