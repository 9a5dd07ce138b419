"""EPO in miniature: a small strategist advises a speaker that follows a known share of its strategies.

The speaker is `follower:N`: it makes the move that a strategy names in N % of its turns, else a random one. So N bounds
what strategies can be worth. All forms begin from the same start (`bench.advice`), whose strategies name moves without
skill. Each form is trained and measured for every N and seed, on games that it did not train on where the task has
such. The last checkpoint is measured, not the best one. Each row is stored in its folder, and the same command
continues where it was interrupted.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.advice import Customer, Start, Wordless, bargains, errands, labels, named, played, prepare
from bench.forms import chosen_forms
from bench.homes import Resident, chores, words
from bench.rows import UNWATCHED, metrics_of, over_seeds, run, stored_row
from training.dataset import Conversation, DatasetLine
from training.engines.base import Sampling
from training.errors import BadInput
from training.players.base import PlayerFactory
from training.players.contestants import ContestantPool
from training.records import Scenario
from training.rollout import Job, RolloutPolicy, collect
from training.run_sections import EngineSection, SpeakerSection
from training.samples import write_scenarios
from training.seeding import rng
from training.store import atomic_file

NONE, SFT, TEACHER = "none", "sft", "teacher"
"""The start itself, supervised learning on the strategies of the task's teacher, and the teacher as the strategist."""
PAIRINGS = ("speaker", "untrained", "both")
"""Who sits opposite: the speaker alone, the start's strategist with the speaker, or the measured strategist itself."""


@dataclass(frozen=True, slots=True)
class Task:
    """A game in miniature. `forms` has the phases of training by form, each a share of the steps with its settings.

    `teacher` makes the moves that the strategies for supervised learning name, in `taught` games. `temperature` is that
    of strategies when they are measured.
    """

    form: SpeakerSection
    train: Sequence[Scenario]
    test: Sequence[Scenario]
    start: Start
    teacher: PlayerFactory | None
    taught: int
    forms: Mapping[str, tuple[tuple[float, dict[str, Any]], ...]]
    steps: int
    config: dict[str, Any]
    measured: int
    temperature: float
    pairings: tuple[str, ...] = ()

    @property
    def game(self) -> str:
        """The name of the game."""
        return self.train[0].game


ALONE = {"opponents": [{"source": "speaker"}]}
LEARN = {"lora": None, "schedule": "linear", "aggregate": "turn_mean", "epochs": 2, "kl_coef": 0.02, "threads": 1}
METHOD = {"name": "epo", "baseline": "batch"}


def tasks() -> dict[str, Task]:
    """Return the tasks by name."""
    return {"epo_negotiation": _negotiation(), "epo_shop": _shop(), "epo_household": _household()}


def _negotiation() -> Task:
    return Task(
        form=SpeakerSection(words=12),
        train=bargains(),
        test=bargains(),
        start=Start(lambda *_: Wordless(), games=2400),
        teacher=None,
        taught=0,
        forms={
            "rl": ((1.0, {"name": "rl", **ALONE}),),
            "rl_self_play": ((0.5, {"name": "rl", **ALONE}), (0.5, {"name": "self_play", "opponents": []})),
        },
        steps=40,
        config={"rollout": {"scenarios": 48}, "learn": {"lr": 3e-4, "tokens_per_batch": 8192}},
        measured=288,
        temperature=0.7,
        pairings=PAIRINGS,
    )


def _shop() -> Task:
    return Task(
        form=SpeakerSection(label="Thought", words=12),
        train=errands("train"),
        test=errands("test"),
        start=Start(partial(Customer, skill=0), games=1200, words=labels(), beginnings=2),
        teacher=partial(Customer, skill=100),
        taught=1200,
        forms={"rl": ((1.0, {"name": "rl"}),)},
        steps=12,
        config={"rollout": {"scenarios": 48}, "learn": {"lr": 1e-3, "tokens_per_batch": 8192}},
        measured=200,
        temperature=1.0,
    )


def _household() -> Task:
    return Task(
        form=SpeakerSection(label="Thought", words=12),
        train=chores(),
        test=chores(),
        start=Start(
            partial(Resident, skill=60),
            games=1200,
            words=words(),
            size={"hidden": 96, "layers": 3, "heads": 4, "groups": 2, "mlp": 256, "context": 0.4},
            sft={"epochs": 2, "tokens_per_batch": 1280},
        ),
        teacher=partial(Resident, skill=100),
        taught=480,
        forms={"rl": ((1.0, {"name": "rl"}),)},
        steps=16,
        config={
            "rollout": {"scenarios": 24},
            "learn": {"lr": 5e-4, "tokens_per_batch": 6144, "tokens_per_update": 6144},
            "method": {"gamma": 0.5},
            "reward": {"process": "rule"},
        },
        measured=96,
        temperature=0.7,
    )


def main(arguments: Namespace) -> dict[str, Any]:
    """Train and measure every form for every following share, seed by seed."""
    import torch

    torch.set_num_threads(1)
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    task, folder = tasks()[arguments.part], arguments.dir.absolute()
    known = [NONE, *((SFT, TEACHER) if task.teacher else ()), *task.forms]
    forms = chosen_forms(arguments.forms, known)
    steps = arguments.steps or task.steps
    start = prepare(folder / "start", task.train, task.start, task.form)
    rows: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        for share in arguments.following:
            for form in forms:
                wanted = {"form": form, "following": share, "seed": seed, "steps_wanted": steps}
                place = folder / f"{form}-{share}-{seed}"
                row = stored_row(place, wanted, lambda: _row(task, start, form, share, seed, steps, place))  # noqa: B023
                print(f"{form}, {share} % followed, seed {seed}: {row['after']}", file=sys.stderr)
                rows.append(row)
    return summary(task, forms, arguments.following, rows, steps)


def _row(task: Task, start: Path, form: str, share: int, seed: int, steps: int, folder: Path) -> dict[str, Any]:
    """Train one form with one seed, unless it is `none`, and measure its last checkpoint."""
    speaker = task.form.model_copy(update={"source": f"follower:{share}"})
    if form == NONE:
        return {"after": measure(task, start, start, speaker, seed), "cpu_s": 0.0}
    if form == TEACHER:
        return {"after": {"reward": taught(task, speaker, seed)}, "cpu_s": 0.0}
    settings = supervised if form == SFT else reinforced
    outcome, run_dir = run(settings(task, start, form, speaker, seed, steps, folder), folder / "train")
    latest = run_dir.latest_checkpoint()
    names = ("reward", "strategies_formed", "entropy", "kl")
    last = metrics_of(run_dir)[-5:]
    return {
        "result": outcome["result"],
        "why": outcome["why"],
        "after": measure(task, latest[1], start, speaker, seed) if latest else None,
        "learned": {name: fmean(line[name] for line in last) for name in names if all(name in line for line in last)},
        "cpu_s": outcome["cpu_s"],
    }


def reinforced(
    task: Task, start: Path, form: str, speaker: SpeakerSection, seed: int, steps: int, folder: Path
) -> dict[str, Any]:
    """Return the configuration of a run of EPO; its scenarios are written into `folder`."""
    *earlier, (_, last) = task.forms[form]
    lengths = [round(steps * share) for share, _ in earlier]
    phases = [{**settings, "steps": length} for (_, settings), length in zip(earlier, lengths, strict=True)]
    return {
        **_shared(task, start, speaker, seed),
        "data": {"path": str(write_scenarios(task.train, folder))},
        "rollout": task.config["rollout"],
        "reward": task.config.get("reward", {}),
        "method": _method(task),
        "learn": {**LEARN, **task.config["learn"], "steps": steps, "save_every": steps},
        "phases": [*phases, {**last, "steps": steps - sum(lengths)}],
        "stop": UNWATCHED,
    }


def _method(task: Task) -> dict[str, Any]:
    return {**METHOD, **task.config.get("method", {})}


def supervised(
    task: Task, start: Path, form: str, speaker: SpeakerSection, seed: int, steps: int, folder: Path
) -> dict[str, Any]:
    """Return the configuration of supervised learning on the teacher's strategies, before the same speaker."""
    assert task.teacher is not None
    episodes = played(task.train, task.taught, partial(named, task.teacher, speaker), seed + 1)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "teacher.jsonl"
    with atomic_file(path) as file:
        for number, episode in enumerate(episodes):
            scenario = episode.scenario.model_copy(update={"id": f"{episode.scenario.id}-{number}"})
            renamed = episode.model_copy(update={"scenario": scenario})
            line = DatasetLine(scenario=scenario, conversations=(Conversation(source="teacher", episode=renamed),))
            file.write(line.dumps() + "\n")
    sft = {"lora": None, "lr": 1e-3, "tokens_per_batch": 8192, "batches_per_step": 1}
    return {**_shared(task, start, speaker, seed), "kind": "sft", "data": {"path": str(path)}, "sft": sft}


def _shared(task: Task, start: Path, speaker: SpeakerSection, seed: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "model": {"base": str(start), "device": "cpu"},
        "engine": {"name": "transformers"},
        "game": {"name": task.game},
        "speaker": speaker.to_dict(),
        "sampling": {"max_tokens": 32},
    }


def taught(task: Task, speaker: SpeakerSection, seed: int) -> float:
    """Return the mean result where the strategies name the teacher's moves: what there is to learn from it."""
    assert task.teacher is not None
    games = played(task.test, task.measured, partial(named, task.teacher, speaker), seed)
    return fmean(each.returns[0] or 0.0 for each in games)


def measure(task: Task, model: Path, start: Path, speaker: SpeakerSection, seed: int) -> dict[str, float]:
    """Return the mean result of a strategist's seat: alone as `reward`, or by pairing, with the other seat's."""
    if not task.pairings:
        return {"reward": fmean(_returns(task, str(model), "", speaker, seed, 0))}
    opposite = {"speaker": "speaker", "untrained": str(start), "both": str(model)}
    means: dict[str, float] = {}
    for pairing in task.pairings:
        sides = [_returns(task, str(model), opposite[pairing], speaker, seed, seat) for seat in (0, 1)]
        means[pairing] = fmean((*sides[0][::2], *sides[1][1::2]))
        means[f"{pairing}_opposite"] = fmean((*sides[0][1::2], *sides[1][::2]))
    return means


def _returns(task: Task, model: str, opposite: str, speaker: SpeakerSection, seed: int, seat: int) -> list[float]:
    """Return the results of all seats of `task.measured` games, game by game, with the model in `seat`."""

    async def results() -> list[float]:
        sampling = Sampling(max_tokens=32, temperature=task.temperature)
        pool = ContestantPool(EngineSection(name="transformers"), sampling, "cpu", form=speaker)
        async with aclosing(pool):
            policies = {"model": pool.open(model, "model").player}
            if opposite:
                policies["opposite"] = pool.open(opposite, "opposite").player
            jobs = []
            for number in range(task.measured):
                scenario = task.test[number % len(task.test)]
                drawn = scenario.with_seed(rng(seed, "measure", number).getrandbits(62))
                names = tuple("model" if each == seat else "opposite" for each in range(len(scenario.seats)))
                jobs.append(Job(number, drawn, names))
            episodes = await collect(jobs, policies, lanes=64, rules=RolloutPolicy(seed=seed))
        if broken := [each.error for each in episodes if each.error]:
            raise AssertionError(f"{len(broken)} games ended in errors: {broken[0]}")
        return [float(result or 0.0) for each in episodes for result in each.returns.values()]

    return asyncio.run(results())


def summary(
    task: Task, forms: Sequence[str], shares: Sequence[int], rows: Sequence[Mapping[str, Any]], steps: int
) -> dict[str, Any]:
    """Return all rows, and by following share each form's means over seeds with their differences from the first."""
    by_share: dict[str, Any] = {}
    for share in shares:
        complete = [row for row in rows if row["following"] == share and row["after"] is not None]
        values = {form: {row["seed"]: row["after"] for row in complete if row["form"] == form} for form in forms}
        by_share[str(share)] = {form: _over_seeds(values[form], values[forms[0]]) for form in forms}
    return {
        "task": {"game": task.game, "steps": steps, "measured": task.measured, "temperature": task.temperature}
        | {**task.config, "method": _method(task), "learn": {**LEARN, **task.config["learn"]}}
        | {"forms": {form: task.forms.get(form) for form in forms}},
        "runs": list(rows),
        "following": by_share,
        "failed": sum(row["after"] is None for row in rows),
    }


def _over_seeds(
    values: Mapping[int, Mapping[str, float]], first: Mapping[int, Mapping[str, float]]
) -> dict[str, dict[str, Any]]:
    """Return for each measured number its mean over seeds, and that of the difference from the first form's."""
    shared = sorted(values.keys() & first.keys())
    numbers = list(values[shared[0]]) if shared else []
    return {
        number: over_seeds("mean", [after[number] for after in values.values()])
        | {"gain": over_seeds("mean", [values[seed][number] - first[seed][number] for seed in shared])}
        for number in numbers
    }


def show(result: dict[str, Any]) -> str:
    """Return one line per following share and form, with the mean of each number and its interval over seeds."""
    lines = []
    for share, forms in result["following"].items():
        for form, numbers in forms.items():
            for number, row in numbers.items():
                low, high = row.get("interval", (float("nan"), float("nan")))
                lines.append(
                    f"{share:>3} % {form:<13} {number:<19} {row['mean']:6.3f}   [{low:.3f}, {high:.3f}] n = {row['n']}"
                )
    return "\n".join(lines)
