"""A small dataset of conversations between scripted players, as a file that cold starts read."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from training import players, samples
from training.dataset import Conversation, DatasetLine
from training.rollout import Job, RolloutPolicy, collect


def write_conversations(path: Path, count: int = 6, name: str = "items") -> Path:
    """Write `count` scenarios of a sample with one scripted game each."""
    starts = samples.load(name)[:count]
    jobs = [Job(at, start, ("scripted", "scripted")) for at, start in enumerate(starts)]
    games = asyncio.run(
        collect(jobs, {"scripted": partial(players.make, "scripted")}, lanes=4, rules=RolloutPolicy(seed=1))
    )
    lines = [
        DatasetLine(scenario=game.scenario, conversations=(Conversation(source="scripted", episode=game),))
        for game in games
    ]
    path.write_text("".join(line.dumps() + "\n" for line in lines), encoding="utf-8")
    return path
