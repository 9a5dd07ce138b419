"""The Werewolf games of the miniature: starts, a cold start on scripted games, and games between two models.

A game has six seats, one night, and one day with one round of short speeches. The model has the architecture of `tiny`,
but its tokenizer and weights come from scripted games of this kind, since `tiny` is not trained on Werewolf. The names
at the seats vary between starts, so that the model learns to read them. A head-to-head counts the games that end
without an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

from training import bases, players
from training.dataset import Conversation, DatasetLine
from training.games import make
from training.games.werewolf.actions import NOBODY
from training.learn.tiny import pretrain
from training.learn.tiny.games import NAMES
from training.players.contestants import ContestantPool
from training.records import Episode, Scenario
from training.rollout import Job, RolloutPolicy, collect
from training.run_sections import EngineSection, SamplingSection
from training.seeding import rng, seeded
from training.store import atomic_directory

WOLF = "werewolf"
ROLES = (WOLF, WOLF, "seer", "villager", "villager", "villager")
SETTINGS = {
    "roles": ROLES,
    "wolf_talk": 0,
    "order": "simultaneous",  # a day's talk is one step, not six
    "max_words": 20,  # a seer's report
    "max_chars": 120,
    "tie": "random",
    "last_words": "nobody",
    "day_limit": 1,
}
STARTS = 64
"""Starts of the runs and head-to-heads; roles are dealt anew in every game."""
LANES = 64
SAMPLING = SamplingSection(max_tokens=24)
RECIPE = pretrain.RECIPE.model_copy(
    update={"context": 0.05, "sft": pretrain.RECIPE.sft.model_copy(update={"lr": 2e-3})},
)
"""The recipe of the cold start. Its learning rate is below `tiny`'s 5e-3, at which the model still draws names that are
not in the game after 700 updates."""


def starts(game: str = WOLF, count: int = STARTS) -> list[Scenario]:
    """Return the first `count` starts, with varying names, of Werewolf or of another game with its settings."""
    return [
        Scenario(
            id=f"village-{n:04}",
            game=game,
            settings=SETTINGS,
            seats=tuple(rng(n, "village").sample(NAMES, len(ROLES))),
        )
        for n in range(1, count + 1)
    ]


def write_starts(folder: Path, game: str) -> Path:
    """Write the starts of a game as a dataset file; return its path."""
    return _written(folder / f"{game}.jsonl", [DatasetLine(scenario=start) for start in starts(game)])


def write_lineage(folder: Path, games: int, trained: int, held_out: int) -> dict[str, Path]:
    """Write scripted games, the starts of self-play, and others for a head-to-head as dataset files; return the paths.

    Scripted games and self-play share starts, with other roles in every game; those of the head-to-head are apart.
    """
    played = [episode for episode in scripted(games, 0) if not episode.error]
    conversations = [Conversation(source="played by scripted", episode=episode) for episode in played]
    every = [DatasetLine(scenario=start) for start in starts(count=trained + held_out)]
    lines = {
        "conversations": [DatasetLine(scenario=each.episode.scenario, conversations=(each,)) for each in conversations],
        "starts": every[:trained],
        "held_out": every[trained:],
    }
    return {name: _written(folder / f"{name}.jsonl", each) for name, each in lines.items()}


def _written(path: Path, lines: Sequence[DatasetLine]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line.dumps() + "\n" for line in lines), "utf-8")
    return path


def scripted(games: int, seed: int) -> list[Episode]:
    """Return games between scripted players, one per start."""
    chance = rng(seed, "villages")
    drawn = [start.with_seed(chance.getrandbits(62)) for start in starts(count=games)]
    jobs = [Job(n, start, ("scripted",) * len(start.seats)) for n, start in enumerate(drawn)]
    return asyncio.run(
        collect(jobs, {"scripted": partial(players.make, "scripted")}, lanes=LANES, rules=RolloutPolicy(seed=seed))
    )


def _drawn(games: int, seed: int) -> list[Scenario]:
    every = starts()
    return [seeded(every[n % STARTS], seed, n // STARTS) for n in range(games)]


def cold_start(folder: Path, games: int) -> Path:
    """Return `folder` with a model trained on `games` scripted games; train it if the folder does not exist."""
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
            pretrain.pretrain(part, scripted(games, RECIPE.seed), RECIPE, info, words=(*NAMES, NOBODY))
    return bases.check_folder(folder)


def played(wolves: Path, village: Path, games: int, seed: int) -> list[Episode]:
    """Return games of one model's wolves against another's village; the same seed gives every pair the same starts."""
    jobs = [Job(n, start, _seated(start)) for n, start in enumerate(_drawn(games, seed))]
    return asyncio.run(_play(jobs, wolves, village, RolloutPolicy(seed=seed)))


def _seated(start: Scenario) -> tuple[str, ...]:
    return tuple("wolves" if role == WOLF else "village" for role in make(start).roles())


async def _play(jobs: Sequence[Job], wolves: Path, village: Path, rules: RolloutPolicy) -> list[Episode]:
    sides = ContestantPool(EngineSection(name="transformers", max_running=LANES), SAMPLING, "cpu")
    async with aclosing(sides):
        policies = {
            name: sides.open(str(path), name).player for name, path in (("wolves", wolves), ("village", village))
        }
        return await collect(jobs, policies, lanes=LANES, rules=rules)
