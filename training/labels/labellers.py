"""Classifiers that many ask at once: with their model in this process, or on the processes of a run's engines."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from training.engines.pooling import Pooling
    from training.labels.classifier import Classifier
    from training.labels.info import ClassifierInfo


class LocalLabeller:
    """A classifier with its model in this process, on a device; loading it blocks."""

    def __init__(self, classifier: Classifier, device: str = "cpu") -> None:
        from training.labels.classifier import Labeller

        self._labeller = Labeller(classifier, device)
        self._one_at_a_time = asyncio.Lock()  # a model takes all cores for one request as for many

    @property
    def info(self) -> ClassifierInfo:
        """What the classifier says of itself."""
        return self._labeller.info

    async def label(self, texts: Sequence[str], dialogues: Sequence[Hashable] | None = None) -> Any:
        """Return the probability (n, L) of each label in each turn; see `Embedder.embed` for `dialogues`."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._labeller.predict, texts, dialogues)


class RemoteEmbedder(Protocol):
    """What embeds turns in other processes: `training.engines.pool.EnginePool`."""

    async def embed(
        self, base: str, texts: Sequence[str], pooling: Pooling, dialogues: Sequence[Hashable] | None
    ) -> Any:
        """Return the embeddings (n, d) of n turns by a model, which every node must have."""


class SpreadLabeller:
    """A classifier whose model is wherever turns are embedded; its head is in this process."""

    def __init__(self, classifier: Classifier, embedder: RemoteEmbedder) -> None:
        self._classifier, self._embedder = classifier, embedder

    @property
    def info(self) -> ClassifierInfo:
        """What the classifier says of itself."""
        return self._classifier.info

    async def label(self, texts: Sequence[str], dialogues: Sequence[Hashable] | None = None) -> Any:
        """Return the probability (n, L) of each label in each turn; see `Embedder.embed` for `dialogues`."""
        info = self.info
        return self._classifier.probabilities(await self._embedder.embed(info.base, texts, info.pooling, dialogues))
