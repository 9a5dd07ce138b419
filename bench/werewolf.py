"""Werewolf in the miniature: wolves that learn against a frozen village, without and with a planted bug.

`werewolf`: one training run per seed; then the trained wolves and those of the cold start play the same starts against
the village of the cold start. `hack`: runs on `bench.leak` under each quality filter. The watchdog's rules are off, so
that the effect of the filter alone is measured. Rows are stored in folders as in the rest of the miniature.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench import leak, werewolf_setup
from bench.rows import UNWATCHED, against, metrics_of, over_seeds, run, stored_row
from training.records import Episode
from training.seeding import derive

if TYPE_CHECKING:
    from training.rundir import RunDir

STEPS = 150
GAMES = 32
"""Games per training step."""
COLD = 4000
"""Scripted games that the cold start learns from."""
FILTERS: dict[str, dict[str, Any]] = {name: {"filter": name} for name in ("off", "zero", "min")}
CURVES = {"malformed": "legal_rate", "reward": "reward", "leaked": "leaked"}


def werewolf(seeds: int, steps: int, games: int, folder: Path) -> dict[str, Any]:
    """Train and measure every seed; return the result of each head-to-head, and the mean gain over seeds."""
    steps = steps or STEPS
    cold = werewolf_setup.cold_start(folder / "cold", COLD)
    wanted = {"steps_wanted": steps, "games": games}
    rows = []
    for seed in range(seeds):
        run_folder = folder / f"wolves-{seed}"
        rows.append(stored_row(run_folder, wanted, partial(_wolves, cold, seed, steps, games, run_folder)))
        print(f"seed {seed}: {rows[-1]['difference']}", file=sys.stderr)
    gains = [row["difference"]["mean"] for row in rows if row["difference"]]
    summary = {"runs": rows, **(over_seeds("gain", gains) if gains else {})}
    return {"task": _task("werewolf", steps), "games": games, "seeds": seeds, "forms": {"default": summary}}


def hack(filters: list[str], seeds: int, steps: int, folder: Path) -> dict[str, Any]:
    """Train with the planted bug under every filter and seed; return the share of malformed replies over the steps."""
    steps = steps or STEPS
    cold = werewolf_setup.cold_start(folder / "cold", COLD)
    summaries: dict[str, Any] = {name: {"runs": []} for name in filters}
    with leak.planted():
        for seed in range(seeds):
            for name in filters:
                run_folder = folder / f"hack-{name}-{seed}"
                wanted = {"steps_wanted": steps, "method": FILTERS[name]}
                row = stored_row(run_folder, wanted, partial(_hacked, cold, seed, steps, name, run_folder))
                print(f"{name}, seed {seed}: {row['result']}, malformed in the end {row['last']}", file=sys.stderr)
                summaries[name]["runs"].append(row)
    ends = {name: [row["last"] for row in summaries[name]["runs"]] for name in filters}
    shared = [seed for seed in range(seeds) if all(ends[name][seed] is not None for name in filters)]
    last = {name: [ends[name][seed] for seed in shared] for name in filters}
    for name in filters if shared else ():
        summaries[name] |= over_seeds("mean", last[name])
    task = _task(leak.NAME, steps) | {"leak": leak.LEAK}
    compared = against(last, filters, "malformed") if shared else {}
    return {"task": task, "seeds": seeds, "compared_seeds": shared, "forms": summaries, **compared}


def _task(game: str, steps: int) -> dict[str, Any]:
    return {"game": game, "settings": werewolf_setup.SETTINGS, "cold_games": COLD, "games": GAMES, "steps": steps}


def _wolves(cold: Path, seed: int, steps: int, games: int, folder: Path) -> dict[str, Any]:
    """Train one seed and play its head-to-head."""
    row, run_dir = trained(cold, seed, steps, folder / "train", game="werewolf")
    latest = run_dir.latest_checkpoint()
    if latest is None:
        return {**row, "difference": None}
    began = time.monotonic()
    starts = derive(seed, "arena")
    sides = {"trained": latest[1], "base": cold}
    episodes = {name: werewolf_setup.played(wolves, cold, games, starts) for name, wolves in sides.items()}
    return {
        **row,
        **compared(episodes["trained"], episodes["base"]),
        "head_to_head_s": round(time.monotonic() - began, 1),
    }


def compared(trained: list[Episode], base: list[Episode]) -> dict[str, Any]:
    """Return the wolves' shares of won games, and their difference over the starts that both played without an error.

    The 95 % interval is Student's t over the paired differences of the starts.
    """
    from training.evaluate.intervals import paired

    pairs = [(a, b) for a, b in zip(trained, base, strict=True) if not (a.error or b.error)]
    won = [(a.metrics["wolves_win"], b.metrics["wolves_win"]) for a, b in pairs]
    return {
        "errors": len(trained) - len(pairs),
        "won": {"trained": fmean(a for a, _ in won), "base": fmean(b for _, b in won)},
        "difference": paired([a for a, _ in won], [b for _, b in won]).to_dict(),
    }


def _hacked(cold: Path, seed: int, steps: int, name: str, folder: Path) -> dict[str, Any]:
    """Train one seed with the planted bug; return the curves, and their first and last means unless the run failed."""
    more = {"method": {"name": "omar", **FILTERS[name]}, "stop": UNWATCHED}
    row, run_dir = trained(cold, seed, steps, folder / "train", game=leak.NAME, **more)
    lines = metrics_of(run_dir)
    curves = {name: [round(line[of], 4) for line in lines if of in line] for name, of in CURVES.items()}
    curves["malformed"] = [round(1 - legal, 4) for legal in curves["malformed"]]
    if row["result"] == "failed":
        return {**row, "first": None, "last": None, "curves": curves}
    ends = {"first": fmean(curves["malformed"][:5]), "last": fmean(curves["malformed"][-5:])}
    return {**row, **ends, "curves": curves}


def trained(
    cold: Path,
    seed: int,
    steps: int,
    folder: Path,
    *,
    game: str,
    learn: Mapping[str, Any] | None = None,
    **sections: Any,
) -> tuple[dict[str, Any], RunDir]:
    """Train the wolves against the cold start's village; return the row of the run, and its directory `folder`.

    `learn` changes that section, and `sections` replace others.
    """
    learning = {
        "steps": steps,
        "lora": None,
        "lr": 1e-3,
        "critic_lr": 3e-4,
        "critic_passes": 10,
        "kl": "none",  # saves a forward pass and a copy of the model
        "threads": 1,
        "tokens_per_batch": 2048,
        "save_every": steps,
        "critic_warmup": min(5, steps // 4),
        **(learn or {}),
    }
    wanted = {
        "seed": seed,
        "model": {"base": str(cold), "device": "cpu"},
        "engine": {"name": "transformers", "max_running": werewolf_setup.LANES},
        "game": {"name": game},
        "data": {"path": str(werewolf_setup.write_starts(folder.parent, game))},
        "sampling": werewolf_setup.SAMPLING.to_dict(),
        "opponents": [{"source": str(cold), "learner": [werewolf_setup.WOLF]}],
        "rollout": {"scenarios": GAMES},
        "learn": learning,
        **sections,
    }
    outcome, run_dir = run(wanted, folder)
    row = {"seed": seed, "result": outcome["result"], "why": outcome["why"], "steps": outcome["step"]}
    return {**row, "train_s": outcome["wall_s"]}, run_dir
