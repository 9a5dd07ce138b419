"""The driver's seconds: games, templates, parsing and traces of a turn; credit and records of a conversation.

The engine is scripted, so that it costs nothing, and nothing is learned. What the driver does for a step is done here
by the same functions. Seconds are CPU time, which other programs hardly change; the driver is one thread.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.recorded_conversations import scenarios
from training import bases, games, rewards
from training.attempts.progress import Progress
from training.engines.base import Engine, SampleRequest, Sampling
from training.engines.local.loading import load_tokenizer
from training.engines.scripted import ScriptedEngine
from training.learn import report
from training.learn.score import Rollout, give_credit, measured, rows, score
from training.methods.omar import OmarConfig
from training.players.model import ModelPlayer
from training.records import LEARNER, Scenario, Seat
from training.reward_section import RewardSection
from training.rollout import Job, RolloutPolicy, collect
from training.run_sections import LearnSection
from training.rundir import AttemptDir
from training.text.template import ChatTokenizer

if TYPE_CHECKING:
    from training.learn.batch import Item
    from training.records import Floats

TURNS, REPLY = 8, 64
"""Replies of each seat, and tokens of a reply."""
TEXT = "I would like to keep the books, and you may have the hats and the balls. What do you think of that? "


class _NoLearner:
    """Takes the place of the learner: all values are 0."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    async def measure(
        self, items: Sequence[Item], *, old: bool, reference: bool, progress: Progress
    ) -> list[dict[str, Floats]]:
        return [{name: np.zeros(len(item)) for name in OmarConfig().build().needs.critic} for item in items]


def measure(model: str, conversations: int = 32, lanes: int = 32) -> dict[str, Any]:
    """Return seconds of a turn and of a conversation's credit, and conversations per hour of the driver alone."""
    chat = ChatTokenizer(load_tokenizer(bases.resolve(model)))
    reply = chat.tokenizer.encode(TEXT * 8, add_special_tokens=False)[: REPLY - 1]
    engine = ScriptedEngine(lambda request: _ended(reply, request))
    starts, sampling = scenarios(conversations, TURNS), Sampling(max_tokens=REPLY)

    def player(scenario: Scenario, seat: Seat) -> ModelPlayer:
        return ModelPlayer(engine, chat, sampling, seat=seat, names=scenario.seats)

    def played(part: Sequence[Scenario]) -> list[Any]:
        jobs = [Job(number, scenario, (LEARNER, LEARNER)) for number, scenario in enumerate(part)]
        return asyncio.run(collect(jobs, {LEARNER: player}, lanes=lanes, rules=RolloutPolicy()))

    played(starts[:2])  # fills caches
    began = process_time()
    episodes = played(starts)
    playing = process_time() - began
    if failed := [episode.error for episode in episodes if episode.error]:
        raise RuntimeError(f"{len(failed)} conversations failed: {failed[0]}")
    began = process_time()
    asyncio.run(_credited(episodes, chat))
    crediting = process_time() - began
    turns = sum(len(episode.turns) for episode in episodes)
    return {
        "turn_s": playing / turns,
        "credit_s": crediting / conversations,
        "conversations_per_hour": 3600 * conversations / (playing + crediting),  # without requests to processes
        "work": {
            "conversations": conversations,
            "turns": turns / conversations,
            "trace_tokens": sum(len(trace.tokens) for e in episodes for trace in e.traces) / conversations,
        },
    }


def requests(pool: Engine, count: int = 256, prompt: int = 512) -> float:
    """Return the driver's seconds of one request to an engine in a process of its own, of any length of reply."""
    sampling = Sampling(max_tokens=1)

    async def ask(first: int) -> None:
        tokens = [[10 + (number + place) % 200 for place in range(prompt)] for number in range(first, first + count)]
        asked = [SampleRequest(each, sampling, seed=number) for number, each in enumerate(tokens)]
        await asyncio.gather(*map(pool.sample, asked))

    asyncio.run(ask(0))  # fills caches
    began = process_time()
    asyncio.run(ask(count))
    return (process_time() - began) / count


def _ended(reply: Sequence[int], request: SampleRequest) -> Sequence[int]:
    return [*reply, *request.stop_token_ids[:1]]


async def _credited(episodes: Sequence[Any], chat: ChatTokenizer) -> None:
    """Do what the driver does with the games of a step beside learning: scores, credit, rows, metrics, records."""
    method, learn = OmarConfig().build(), LearnSection.from_dict({"kl": "none", "kl_measured": False})
    reward = rewards.PerGame({"negotiation": rewards.build(RewardSection(), games.lookup("negotiation"), None, {})})
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        progress = Progress(AttemptDir(Path(scratch)), 0)
        rollouts: list[Rollout] = await score(episodes, reward, 0, 1)
        metrics: Mapping[str, float] = report.outcome_metrics(rollouts)
        learner: Any = _NoLearner(chat.tokenizer)
        await measured(rollouts, learner, method.needs, learn, old=False, progress=progress)
        give_credit(rollouts, method)
        rows(rollouts)
        progress.metrics(1, {**metrics, **report.credit_metrics(rollouts)})
        report.write_episodes(progress, 1, rollouts)
