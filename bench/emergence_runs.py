"""Self-play of small models in negotiation and in Werewolf, and held-out games with the checkpoints of each run.

The negotiators are `tiny`, which has learned from scripted negotiations, or a pretrained language model after a cold
start on people's dialogues; both seats learn from self-play on CaSiNo's starts. The wolves are those of the miniature
(`bench.werewolf_setup`), which learn against the village of the cold start. Step 0 is the model before self-play. All
checkpoints play the same starts. What a folder already has is read, not measured again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench import werewolf_setup
from bench.rows import UNWATCHED, run
from bench.werewolf import trained
from training import bases, dataset
from training.config import CONFIGS, load
from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.players.contestants import ContestantPool
from training.records import Episode, Scenario
from training.rollout import Job, RolloutPolicy, collect
from training.run_sections import EngineSection, SamplingSection
from training.rundir import RunDir
from training.seeding import seeded
from training.store import loads, write_json
from webapp.scenarios.importers import casino

GAMES = 16
"""Of a training step of Werewolf."""
SCRIPTED = 800
"""Scripted games of the wolves' cold start."""
LANES = 40
SEED = 0
"""Of the held-out games."""

Play = Callable[[Path], list[Episode]]
Outcome = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Steps of a run, a checkpoint every so many steps, and the held-out games of each checkpoint."""

    steps: int = 30
    every: int = 10
    held_out: int = 80

    @property
    def learn(self) -> dict[str, Any]:
        """The settings of the section `learn` that follow from it."""
        return {
            "steps": self.steps, "save_every": self.every, "keep": self.steps // self.every,
            "critic_warmup": min(3, self.steps // 4),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Negotiators:
    """The model that learns to negotiate, and what differs between a model of scripted phrases and a pretrained one."""

    base: str
    conversations: int
    """Of a training step."""
    learn: Mapping[str, Any]
    """What replaces the preset's settings of the section `learn`."""
    max_tokens: int = 48
    cold: int = 0
    """CaSiNo's dialogues with the fewest characters, from which the model learns first; 0 = no cold start."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the game."""
    plain: bool = False
    """Whether starts are described without their story and reasons, which makes prompts shorter by half."""


NEGOTIATORS = {
    "tiny": Negotiators("tiny", 8, {"lora": None, "lr": 7e-4}),
    "smollm2-135m": Negotiators(
        "smollm2-135m",
        2,
        {"tokens_per_batch": 1024, "kl": "none", "kl_measured": False},
        max_tokens=24,
        cold=20,
        settings={"turn_limit": 10},
        plain=True,
    ),
}
"""Without KL divergence a step needs a forward pass less. The sizes of SmolLM2 fit an hour of one core."""
COLD = {"dtype": "float32", "batches_per_step": 1, "tokens_per_batch": 1024, "lr": 1e-3}
"""The cold start's section `sft`, where it replaces the preset."""


@dataclass(frozen=True, slots=True)
class Played:
    """The held-out games of a seed's checkpoints by step, and the result of the training run."""

    seed: int
    outcome: Outcome
    games: dict[int, list[Episode]]


def negotiation(file: Path, seeds: int, folder: Path, sizes: Sizes, negotiators: Negotiators) -> list[Played]:
    """Train on the starts of CaSiNo's file and play the last of them, which are held out."""
    lines = casino.read(file, lambda *_: None).lines
    if len(lines) <= sizes.held_out + negotiators.cold:
        raise BadInput(f"{len(lines)} dialogues leave none for training", file.name)
    if negotiators.plain:
        lines = [_plain(line) for line in lines]
    starts = [DatasetLine(scenario=line.scenario) for line in lines]
    held_out = [line.scenario for line in starts[-sizes.held_out :]]
    data = _written(folder / "starts.jsonl", starts[: -sizes.held_out])
    start = bases.resolve(negotiators.base)
    if negotiators.cold:
        shortest = sorted(lines[: -sizes.held_out], key=_characters)[: negotiators.cold]
        start = _cold_start(_written(folder / "dialogues.jsonl", shortest), negotiators, folder / "cold")

    def train(seed: int, place: Path) -> Outcome:
        return run(_bargaining(data, start, seed, sizes, negotiators), place)[0]

    play = partial(_bargained, held_out, negotiators)
    return [_played(seed, folder, start, train, play) for seed in range(seeds)]


def _plain(line: DatasetLine) -> DatasetLine:
    """Return a start of CaSiNo and its dialogue without story and reasons, which no rule of the game reads."""
    deal = line.scenario.settings["deal"]
    sides = [{**side, "reasons": {}} for side in deal["sides"]]
    settings = {**line.scenario.settings, "deal": {**deal, "story": "", "sides": sides}}
    scenario = line.scenario.model_copy(update={"settings": settings})
    conversations = tuple(
        each.model_copy(update={"episode": each.episode.model_copy(update={"scenario": scenario})})
        for each in line.conversations
    )
    return line.model_copy(update={"scenario": scenario, "conversations": conversations})


def _characters(line: DatasetLine) -> int:
    return sum(len(each.move.text) for each in line.conversations[0].episode.moves)


def _cold_start(dialogues: Path, negotiators: Negotiators, folder: Path) -> Path:
    """Return the checkpoint of a cold start on dialogues, which is trained unless the folder has it."""
    if (done := RunDir(folder).latest_checkpoint()) is None:
        preset = load(CONFIGS / "sft" / "negotiation.toml").to_dict()
        cold = {
            **preset,
            "model": {"base": negotiators.base, "device": "cpu"},
            "data": {"path": str(dialogues)},
            "sft": {**preset["sft"], **COLD},
        }
        outcome, run_dir = run(cold, folder)
        if outcome["result"] != "succeeded" or (done := run_dir.latest_checkpoint()) is None:
            raise RuntimeError(f"the cold start {outcome['result']}: {outcome['why']}")
    return done[1]


def werewolf(seeds: int, folder: Path, sizes: Sizes) -> list[Played]:
    """Train the wolves and play."""
    cold = werewolf_setup.cold_start(folder / "cold", SCRIPTED)
    more = {"rollout": {"scenarios": GAMES}, "stop": UNWATCHED}

    def train(seed: int, place: Path) -> Outcome:
        return trained(cold, seed, sizes.steps, place, game="werewolf", learn=sizes.learn, **more)[0]

    def play(wolves: Path) -> list[Episode]:
        return werewolf_setup.played(wolves, cold, sizes.held_out, SEED)

    return [_played(seed, folder, cold, train, play) for seed in range(seeds)]


def _played(seed: int, folder: Path, start: Path, train: Callable[[int, Path], Outcome], play: Play) -> Played:
    """Return a seed's games; train it first, and play what is missing."""
    place = folder / f"seed-{seed}"
    if not (result := place / "result.json").is_file():
        outcome = train(seed, place / "train")
        write_json(result, {name: outcome[name] for name in ("result", "why") if name in outcome})
    games = {0: _episodes(folder / "step-0.jsonl", partial(play, start))}
    for step, checkpoint in RunDir(place / "train").attempt(1).checkpoints():
        games[step] = _episodes(place / f"step-{step}.jsonl", partial(play, checkpoint))
    outcome = loads(result.read_text())
    print(f"{folder.name}, seed {seed}: {outcome['result']} {outcome['why']}", file=sys.stderr)
    return Played(seed, outcome, games)


def _episodes(file: Path, play: Callable[[], list[Episode]]) -> list[Episode]:
    """Return the games that a file has, else play them and write it."""
    if not file.is_file():
        lines = [
            DatasetLine(scenario=each.scenario, conversations=(Conversation(source="self-play", episode=each),))
            for each in play()
        ]
        _written(file, lines)
    return [dataset.parse_line(text, file.name).conversations[0].episode for text in file.read_bytes().splitlines()]


def _written(path: Path, lines: Sequence[DatasetLine]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line.dumps() + "\n" for line in lines), "utf-8")
    return path


def _preset() -> dict[str, Any]:
    return load(CONFIGS / "omar" / "negotiation.toml").to_dict()


def _bargaining(starts: Path, base: Path, seed: int, sizes: Sizes, negotiators: Negotiators) -> dict[str, Any]:
    """Return the preset of negotiation for a small model on one thread."""
    preset = _preset()
    small = {"dtype": "float32", "threads": 1}
    return {
        **preset,
        "seed": seed,
        "model": {"base": str(base), "device": "cpu"},
        "engine": {"name": "transformers", "max_running": LANES},
        "sampling": {**preset["sampling"], "max_tokens": negotiators.max_tokens},
        "game": {**preset["game"], "settings": dict(negotiators.settings)},
        "rollout": {**preset["rollout"], "scenarios": negotiators.conversations},
        "data": {"path": str(starts)},
        "learn": {**preset["learn"], **small, **negotiators.learn, **sizes.learn},
        "stop": UNWATCHED,
    }


def _bargained(starts: Sequence[Scenario], negotiators: Negotiators, model: Path) -> list[Episode]:
    """Return the games of a model with itself, under the rules of training."""
    preset = _preset()
    changed = [start.model_copy(update={"settings": {**start.settings, **negotiators.settings}}) for start in starts]
    jobs = [Job(n, seeded(start, SEED, 0), ("both", "both")) for n, start in enumerate(changed)]
    rules = RolloutPolicy(SEED, 0, preset["rollout"]["retries"], preset["rollout"]["on_refused"])
    sampling = SamplingSection.from_dict({**preset["sampling"], "max_tokens": negotiators.max_tokens})
    return asyncio.run(_play(jobs, model, sampling, rules))


async def _play(jobs: Sequence[Job], model: Path, sampling: SamplingSection, rules: RolloutPolicy) -> list[Episode]:
    pool = ContestantPool(EngineSection(name="transformers", max_running=LANES), sampling, "cpu")
    async with aclosing(pool):
        policies = {"both": pool.open(str(model), "both").player}
        return await collect(jobs, policies, lanes=LANES, rules=rules)
