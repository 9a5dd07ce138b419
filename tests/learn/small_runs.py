"""Runs small enough for a test: a random Llama that babbles at a short negotiation, on one thread."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toy_models import write_random_llama
from training import samples
from training.attempts.start import start
from training.config import RunConfig, parse
from training.games import make
from training.learn import playing
from training.rundir import RunDir
from training.store import dumps

WINDOW = 4096


def make_run(
    root: Path, *, steps: int = 3, babble: str = "words", layers: int = 1, **sections
) -> tuple[RunConfig, RunDir]:
    """A run directory with its own model and data; `sections` are merged into the configuration.

    A model whose tokens are words of the rules needs less than half the time of one that knows bytes alone.
    """
    torch.set_num_threads(1)
    model = root / "model"
    if not model.exists():
        starts = samples.load("items")[:3]
        rules = "".join(message.text for start in starts for message in make(start).observe(0).messages)
        write_random_llama(model, layers=layers, window=WINDOW, known=rules if babble == "words" else "")
        lines = [dumps(start.to_dict()) for start in starts]
        (root / "data.jsonl").write_text("\n".join(lines) + "\n")
    config = {
        "seed": 5,
        "model": {"base": str(model), "device": "cpu"},
        "engine": {"name": "transformers"},
        "sampling": {"max_tokens": 12},
        "game": {"name": "negotiation", "settings": {"turn_limit": 2}},
        "data": {"path": str(root / "data.jsonl")},
        "rollout": {"scenarios": 2, "games": 2},
        "learn": {
            "steps": steps,
            "lora": {"rank": 4, "alpha": 8.0},
            "lr": 1e-3,
            "critic_warmup": 1,
            "save_every": 1,
            "threads": 1,
            "deterministic": True,
            "tokens_per_batch": 8192,
        },
        "stop": {"failing": 1.0},
    }
    for name, values in sections.items():
        config[name] = {**config.get(name, {}), **values} if isinstance(values, dict) else values
    run_dir = RunDir(root / "run")
    return start(parse(config), run_dir, root), run_dir


def stop_at(monkeypatch: pytest.MonkeyPatch, *steps: int) -> None:
    """Ask a run to stop as it is about to play each of these steps, once each and in this order."""
    stops, play = list(steps), playing.play

    async def stopping(context: Any, progress: Any, step: int, *rest: Any) -> Any:
        if stops and step == stops[0]:
            stops.pop(0)
            progress.attempt.ask("stop")
        return await play(context, progress, step, *rest)

    monkeypatch.setattr(playing, "play", stopping)


def another(run_dir: RunDir, folder: Path) -> RunDir:
    """A fresh run in `folder` with the configuration, model and data of a run."""
    fresh = RunDir(folder / "run")
    fresh.inputs.mkdir(parents=True)
    fresh.config.write_bytes(run_dir.config.read_bytes())
    for file in run_dir.inputs.iterdir():
        (fresh.inputs / file.name).write_bytes(file.read_bytes())
    return fresh
