"""What the driver of a run asks of the weights that are trained: measure, update, hand them out, save.

A `Learner` is one rank: its policy, its critic and their optimizers. `Learners` are the ranks as the driver sees them;
`InProcess` is a single rank in the driver's own process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

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

    from training.attempts.progress import Progress
    from training.engines.base import Engine
    from training.learn.batch import Item
    from training.records import Floats
    from training.run_sections import LearnSection

CRITIC = "critic_optimizer"
"""What the critic's optimizer is called in a checkpoint."""


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


class Learner:
    """One rank. Of several, each method is called on all of them, in the same order."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.policy, self.updater = policy, Updater(policy, seed)

    def begin(self, settings: Settings) -> None:
        """Train by other settings from now on."""
        self.updater.begin(settings.learn, settings.before)
        self.policy.critic.use(settings.heads)
        if settings.refers:
            self.policy.refer(settings.reference)

    def go_back(self, folder: Path) -> None:
        """Take the weights, value heads and optimizers of an earlier checkpoint."""
        self.policy.go_back(folder)
        self.take(checkpoint.read(folder))

    def take(self, state: TrainerState) -> None:
        """Take adapters, value heads and the optimizers' moments; raise `BadInput` where they do not fit."""
        self.policy.restore(state.tensors)
        checkpoint.unpack_optimizer(self.updater.optimizer, state.data["optimizer"], state.tensors)
        if self.policy.critic.optimizer and state.data.get(CRITIC):
            checkpoint.unpack_optimizer(self.policy.critic.optimizer, state.data[CRITIC], state.tensors, CRITIC)

    @property
    def unfitted(self) -> tuple[str, ...]:
        """The names of the value heads in use that have never been fitted."""
        return self.policy.critic.unfitted

    def begin_critic(self, means: Mapping[str, float]) -> None:
        """Let value heads predict these constants until their first fit."""
        self.policy.critic.begin(means)

    def measure(
        self, items: Sequence[Item], *, old: bool, reference: bool, beat: Callable[[int], None]
    ) -> list[dict[str, Floats] | None]:
        """See `training.learn.forward.measure`."""
        return measure(self.policy, items, old=old, reference=reference, beat=beat)

    def update(self, items: Sequence[Item], step: int, progress: Signals) -> dict[str, float]:
        """Learn from one step's items; return its metrics. Raises what `training.learn.update` raises."""
        metrics = self.updater.run(self.updater.plan(items, step), step, progress)
        memory.release()
        return metrics

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights that sample; see `merged_weights`."""
        return models.merged_weights(self.policy.model)

    def optimizers(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the optimizers' state as (JSON data, tensors); of several ranks the tensors are shards."""
        data, tensors = checkpoint.pack_optimizer(self.updater.optimizer)
        critic: dict[str, Any] = {}
        if self.policy.critic.optimizer:
            critic, moments = checkpoint.pack_optimizer(self.policy.critic.optimizer, CRITIC)
            tensors |= moments
        return {"optimizer": data, CRITIC: critic}, tensors

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield what a checkpoint stores beside the model folder, whole: moments, value heads, unmerged adapters."""
        for name, tensor in (self.optimizers()[1] | self.policy.tensors()).items():
            yield name, whole(tensor)

    def outlines(self) -> tuple[dict[str, Outline], dict[str, Outline]]:
        """Return in outline what `weights` and `tensors` yield."""
        tensors = self.optimizers()[1] | self.policy.tensors()
        return models.merged_outlines(self.policy.model), {name: Outline.of(t) for name, t in tensors.items()}


class Learners(Protocol):
    """The ranks of the learner, as the driver sees them."""

    tokenizer: PreTrainedTokenizerBase
    window: int
    """The largest number of tokens that the model takes, prompt and reply together."""

    def begin(self, settings: Settings) -> None:
        """See `Learner.begin`."""

    def go_back(self, folder: Path) -> None:
        """See `Learner.go_back`."""

    def take(self, state: TrainerState) -> None:
        """See `Learner.take`."""

    @property
    def unfitted(self) -> tuple[str, ...]:
        """See `Learner.unfitted`."""

    def begin_critic(self, means: Mapping[str, float]) -> None:
        """See `Learner.begin_critic`."""

    async def measure(
        self, items: Sequence[Item], *, old: bool, reference: bool, beat: Callable[[int], None]
    ) -> list[dict[str, Floats]]:
        """Return every item's values by head; set `old` and `reference` of all items where requested."""

    async def update(self, items: Sequence[Item], step: int, progress: Progress) -> dict[str, float]:
        """See `Learner.update`; sets the items' entropies."""

    async def push(self, engine: Engine) -> None:
        """Give an engine the present weights; raise `EngineError` if it cannot take them."""

    def save(self, folder: Path, info: ModelInfo, state: TrainerState, *, adapter_only: bool) -> None:
        """Write a checkpoint with the weights and `state`, to which the learner's own is added."""

    def close(self) -> None:
        """Free what the ranks hold; may be called twice."""


class InProcess:
    """A learner of one rank in this process."""

    def __init__(self, learner: Learner) -> None:
        self._learner, self._policy = learner, learner.policy
        self.tokenizer = self._policy.tokenizer
        self.window = int(self._policy.inner.config.max_position_embeddings)

    def begin(self, settings: Settings) -> None:
        """See `Learner.begin`."""
        self._learner.begin(settings)

    def go_back(self, folder: Path) -> None:
        """See `Learner.go_back`."""
        self._learner.go_back(folder)

    def take(self, state: TrainerState) -> None:
        """See `Learner.take`."""
        self._learner.take(state)

    @property
    def unfitted(self) -> tuple[str, ...]:
        """See `Learner.unfitted`."""
        return self._learner.unfitted

    def begin_critic(self, means: Mapping[str, float]) -> None:
        """See `Learner.begin_critic`."""
        self._learner.begin_critic(means)

    async def measure(
        self, items: Sequence[Item], *, old: bool, reference: bool, beat: Callable[[int], None]
    ) -> list[dict[str, Floats]]:
        """See `Learners.measure`."""
        values = self._learner.measure(items, old=old, reference=reference, beat=beat)
        return [each or {} for each in values]

    async def update(self, items: Sequence[Item], step: int, progress: Progress) -> dict[str, float]:
        """See `Learners.update`."""
        return self._learner.update(items, step, progress)

    async def push(self, engine: Engine) -> None:
        """See `Learners.push`."""
        await engine.load_weights(self._learner.weights())

    def save(self, folder: Path, info: ModelInfo, state: TrainerState, *, adapter_only: bool) -> None:
        """See `Learners.save`."""
        data, tensors = self._learner.optimizers()
        joined = TrainerState(state.step, state.data | data, tensors | state.tensors | self._policy.tensors())
        checkpoint.write(folder, self._policy.model, self.tokenizer, info, joined, adapter_only=adapter_only)

    def close(self) -> None:
        """See `Learners.close`."""
