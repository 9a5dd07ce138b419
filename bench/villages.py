"""The villages of the miniature: starts, a cold start on scripted games, and the wolves' share of won games.

Six seats, two days at most, one round of short speeches a day. The model is of `tiny`'s kind and made by its recipe,
but its tokenizer and its weights come from scripted games of these villages: `tiny` itself has never read a word of
Werewolf. An arena counts the games that ended without an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

from training import bases, players
from training.games import make
from training.learn import tiny
from training.learn.sides import Sides
from training.records import Episode, Scenario
from training.rollout import Job, Rules, collect
from training.run_sections import EngineSection, SamplingSection
from training.seeding import seeded
from training.store import atomic_directory, dumps

SETTINGS = {
    "wolf_talk": 0,
    "order": "simultaneous",  # a day's talk is one step, not six
    "max_words": 12,
    "max_chars": 100,
    "tie": "random",
    "last_words": "nobody",
    "day_limit": 2,
}
SEATS = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn")
STARTS = 32
"""Starts of the same village; roles are dealt anew in every game."""
LANES = 64
SAMPLING = SamplingSection(max_tokens=16)
WOLF = "werewolf"


def starts(game: str = WOLF) -> list[Scenario]:
    """Return the starts, of Werewolf or of another game with its settings."""
    return [Scenario(id=f"village-{n:02}", game=game, settings=SETTINGS, seats=SEATS) for n in range(1, STARTS + 1)]


def write_starts(folder: Path, game: str) -> Path:
    """Write the starts of a game as a dataset file; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{game}.jsonl"
    path.write_text("".join(dumps(start.to_dict()) + "\n" for start in starts(game)), "utf-8")
    return path


def scripted(games: int, seed: int) -> list[Episode]:
    """Return games between scripted players."""
    jobs = [Job(n, start, ("scripted",) * len(SEATS)) for n, start in enumerate(_drawn(games, seed))]
    return asyncio.run(
        collect(jobs, {"scripted": partial(players.make, "scripted")}, lanes=LANES, rules=Rules(seed=seed))
    )


def _drawn(games: int, seed: int) -> list[Scenario]:
    every = starts()
    return [seeded(every[n % STARTS], seed, n // STARTS) for n in range(games)]


def cold_start(folder: Path, games: int) -> Path:
    """Return `folder` with a model that has learned from so many scripted games, made now unless it is there."""
    if not folder.is_dir():
        entry = bases.REGISTRY["tiny"]
        info = bases.ModelInfo(
            name=f"tiny of villages, {games} games",
            base="tiny",
            licence=entry.licence,
            note=entry.note,
            command="python -m bench miniature werewolf",
        )
        with atomic_directory(folder) as part:
            tiny.pretrain(part, scripted(games, tiny.RECIPE.seed), tiny.RECIPE, info)
    return bases.check_folder(folder)


def played(wolves: Path, village: Path, games: int, seed: int) -> list[Episode]:
    """Return games of one model's wolves against another's village; the same seed gives every pair the same starts."""
    jobs = [Job(n, start, _seated(start)) for n, start in enumerate(_drawn(games, seed))]
    return asyncio.run(_play(jobs, wolves, village, Rules(seed=seed)))


def _seated(start: Scenario) -> tuple[str, ...]:
    return tuple("wolves" if role == WOLF else "village" for role in make(start).roles())


async def _play(jobs: Sequence[Job], wolves: Path, village: Path, rules: Rules) -> list[Episode]:
    sides = Sides(EngineSection(name="transformers", max_running=LANES), SAMPLING, "cpu")
    async with aclosing(sides):
        policies = {
            name: sides.open(str(path), name).player for name, path in (("wolves", wolves), ("village", village))
        }
        return await collect(jobs, policies, lanes=LANES, rules=rules)
