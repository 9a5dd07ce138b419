"""What the driver of a run asks of the weights that are trained: measure, update, send them to engines, save.

A `Learner` is one rank: its policy, its critic and their optimizers. `Learners` are the ranks as the driver sees them;
`InProcess` is a single rank in the driver's own process. A method of `Learner` is called as
`learners.call(Learner.begin, settings)`, so that it is written once.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import torch

from training.bases import ModelInfo
from training.learn import checkpoint, memory, models
from training.learn.checkpoint import TrainerState
from training.learn.forward import measure
from training.learn.policy import Policy
from training.learn.ranks import whole
from training.learn.tensor_files import Outline
from training.learn.update import Signals, Updater

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from training.engines.base import Engine
    from training.learn.batch import Item
    from training.records import Floats
    from training.run_sections import LearnSection

P = ParamSpec("P")
T = TypeVar("T")
OPTIMIZER, CRITIC = "optimizer", "critic_optimizer"
"""What the optimizers of the policy and of the critic are called in a checkpoint."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the learner trains by from training step `before` on: a phase's, or the run's.

    `heads` are the value heads in use. The KL divergence is measured from the checkpoint `reference`, or from what the
    run started from; it stays as it is where `refers` is False.
    """

    learn: LearnSection
    before: int
    heads: tuple[str, ...]
    refers: bool = False
    reference: Path | None = None


class Measurements(NamedTuple):
    """What a rank measured of the items that it read, by their place: values by head, log-probabilities."""

    values: dict[int, dict[str, Floats]]
    old: dict[int, Floats]
    reference: dict[int, Floats]


class UpdateResult(NamedTuple):
    """The metrics of an update, and the entropies of what a rank read, by place among the items and their branches."""

    metrics: dict[str, float]
    entropies: dict[int, Floats]


class Learner:
    """One rank. Of several, each method is called on all of them, in the same order.

    `beat` is called while a checkpoint is loaded.
    """

    def __init__(self, policy: Policy, seed: int, beat: Callable[[], None] | None = None) -> None:
        self.policy, self.updater, self._beat = policy, Updater(policy, seed), beat

    @property
    def window(self) -> int:
        """The largest number of tokens that the model takes, prompt and reply together."""
        return int(self.policy.inner.config.max_position_embeddings)

    def begin(self, settings: Settings) -> None:
        """Train by other settings from now on."""
        self.updater.begin(settings.learn, settings.before)
        self.policy.critic.use(settings.heads)
        if settings.refers:
            self.policy.refer(settings.reference)

    def go_back(self, folder: Path) -> None:
        """Take the weights, value heads and optimizers of an earlier checkpoint; every rank must be able to read it."""
        self.policy.go_back(folder)
        self.take(checkpoint.read(folder, self.policy.ranks))

    def take(self, state: TrainerState) -> None:
        """Take adapters, value heads and the optimizers' states; raise `BadInput` where they do not fit.

        Each rank reads its part of the state's tensors, which are those of a file.
        """
        self.policy.restore(state.tensors)
        group, critic = self.policy.ranks, self.policy.critic.optimizer
        optimizer, beat = self.updater.optimizer, self._beat
        checkpoint.unpack_optimizer(optimizer, state.data[OPTIMIZER], state.tensors, group=group, beat=beat)
        if critic and state.data.get(CRITIC):
            checkpoint.unpack_optimizer(critic, state.data[CRITIC], state.tensors, CRITIC, group)

    def unfitted(self) -> tuple[str, ...]:
        """Return the names of the value heads in use that have never been fitted."""
        return self.policy.critic.unfitted

    def begin_critic(self, means: Mapping[str, float]) -> None:
        """Let value heads predict these constants until their first fit."""
        self.policy.critic.begin(means)

    def measure(self, items: Sequence[Item], old: bool, reference: bool, progress: Signals) -> Measurements:
        """Measure the items of which this rank reads its part; see `training.learn.forward.measure`."""

        def beat(tokens: int) -> None:
            progress.beat()
            progress.check()

        values = measure(self.policy, items, old=old, reference=reference, beat=beat)
        mine = [place for place, each in enumerate(values) if each is not None]
        return Measurements(
            {place: values[place] or {} for place in mine},
            {place: row for place in mine if (row := items[place].old) is not None and old},
            {place: row for place in mine if (row := items[place].reference) is not None and reference},
        )

    def update(self, items: Sequence[Item], step: int, progress: Signals) -> UpdateResult:
        """Learn from one step's items. Raises what `training.learn.update` raises."""
        metrics = self.updater.run(self.updater.plan(items, step), step, progress)
        memory.release()
        every = enumerate(_with_branches(items))
        return UpdateResult(metrics, {place: item.entropy for place, item in every if item.entropy is not None})

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights that sample; see `merged_weights`."""
        return models.merged_weights(self.policy.model)

    def bfloat16_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights for engines that sample in bfloat16: half the bytes, rounded as the engines would."""
        return models.merged_weights(self.policy.model, torch.bfloat16)

    def files(self, info: ModelInfo, adapter_only: bool) -> dict[str, bytes]:
        """Return the files of a model folder by name, without full weights; adapters are among them.

        Of several ranks the first returns them.
        """
        policy = self.policy
        with tempfile.TemporaryDirectory() as folder:
            models.save_files(policy.model, policy.tokenizer, Path(folder), info, adapter_only=adapter_only)
            return {file.name: file.read_bytes() for file in Path(folder).iterdir()} if policy.ranks.first else {}

    def optimizer_data(self) -> dict[str, Any]:
        """Return the JSON part of the optimizers' state."""
        return self.optimizers()[0]

    def optimizers(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the optimizers' state as (JSON data, tensors); of several ranks the tensors are shards."""
        data, tensors = checkpoint.pack_optimizer(self.updater.optimizer)
        critic: dict[str, Any] = {}
        if self.policy.critic.optimizer:
            critic, states = checkpoint.pack_optimizer(self.policy.critic.optimizer, CRITIC)
            tensors |= states
        return {OPTIMIZER: data, CRITIC: critic}, tensors

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield what a checkpoint stores beside the model folder, whole: optimizer states, value heads, adapters."""
        for name, tensor in (self.optimizers()[1] | self.policy.tensors()).items():
            yield name, whole(tensor)

    def outlines(self) -> tuple[dict[str, Outline], dict[str, Outline]]:
        """Return in outline what `weights` and `tensors` yield."""
        tensors = self.optimizers()[1] | self.policy.tensors()
        return models.merged_outlines(self.policy.model), {name: Outline.of(t) for name, t in tensors.items()}


def _with_branches(items: Sequence[Item]) -> Iterator[Item]:
    return (each for item in items for each in (item, *item.branches))


class Learners(ABC):
    """The ranks of the learner, as the driver sees them. `window` is that of `Learner`."""

    tokenizer: PreTrainedTokenizerBase
    window: int

    @abstractmethod
    def check(self) -> None:
        """Raise `ProcessLost` if a rank is gone, and what else ended the ranks."""

    @abstractmethod
    def call(self, method: Callable[Concatenate[Learner, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Call a method of `Learner` on every rank; return what the first returns."""

    @abstractmethod
    async def work(
        self, method: Callable[..., T], items: Sequence[Item], *arguments: Any, progress: Signals
    ) -> list[T]:
        """Call a method of `Learner` that reads items and may be stopped; return what each rank returns."""

    @abstractmethod
    async def push(self, engine: Engine, version: int) -> None:
        """Send an engine the present weights, which are of this version; raise `EngineError` if it cannot take them."""

    @abstractmethod
    def save(
        self, folder: Path, info: ModelInfo, state: TrainerState, *, adapter_only: bool, beat: Callable[[], None]
    ) -> None:
        """Write a checkpoint with the weights and `state`, to which the learner's own is added.

        `beat` is called after every chunk, since a large one takes longer than a process may be without progress.
        """

    @abstractmethod
    def close(self) -> None:
        """Free what the ranks hold; may be called twice."""

    async def measure(
        self, items: Sequence[Item], *, old: bool, reference: bool, progress: Signals
    ) -> list[dict[str, Floats]]:
        """Return every item's values by head; set `old` and `reference` of all items where requested."""
        values: list[dict[str, Floats]] = [{} for _ in items]
        for part in await self.work(Learner.measure, items, old, reference, progress=progress):
            for place, by_head in part.values.items():
                values[place] = by_head
            for place, row in part.old.items():
                items[place].old = row
            for place, row in part.reference.items():
                items[place].reference = row
        return values

    async def update(self, items: Sequence[Item], step: int, progress: Signals) -> dict[str, float]:
        """Learn from one step's items and set their entropies; return the metrics."""
        parts = await self.work(Learner.update, items, step, progress=progress)
        every = list(_with_branches(items))
        for part in parts:
            for place, row in part.entropies.items():
                every[place].entropy = row
        return parts[0].metrics


class InProcess(Learners):
    """A learner of one rank in this process."""

    def __init__(self, learner: Learner) -> None:
        self._learner, self._policy = learner, learner.policy
        self.tokenizer, self.window = self._policy.tokenizer, learner.window

    def check(self) -> None:
        """See `Learners.check`."""

    def call(self, method: Callable[Concatenate[Learner, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """See `Learners.call`."""
        return method(self._learner, *arguments, **named)

    async def work(
        self, method: Callable[..., T], items: Sequence[Item], *arguments: Any, progress: Signals
    ) -> list[T]:
        """See `Learners.work`."""
        return [method(self._learner, items, *arguments, progress)]

    async def push(self, engine: Engine, version: int) -> None:
        """See `Learners.push`."""
        await engine.load_weights(self._learner.weights(), version)

    def save(
        self, folder: Path, info: ModelInfo, state: TrainerState, *, adapter_only: bool, beat: Callable[[], None]
    ) -> None:
        """See `Learners.save`."""
        data, tensors = self._learner.optimizers()
        joined = TrainerState(state.step, state.data | data, tensors | dict(state.tensors) | self._policy.tensors())
        model = self._policy.model
        checkpoint.write(folder, model, self.tokenizer, info, joined, adapter_only=adapter_only, beat=beat)

    def close(self) -> None:
        """See `Learners.close`."""
