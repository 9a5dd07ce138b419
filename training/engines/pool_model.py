"""Another model on the processes of a pool of engines, such as an opponent's: an engine of its own in each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from training.engines.base import Sample, SampleRequest, Weights
from training.errors import EngineError, ParleyError

if TYPE_CHECKING:
    from training.engines.pool import EnginePool


class PoolModel:
    """An `AdapterEngine` with the key `key` in a pool (`EnginePool.open_model`). Raises what the pool raises."""

    def __init__(self, pool: EnginePool, key: str) -> None:
        self._pool, self._key = pool, key

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample one continuation; see `Engine.sample`."""
        return await self._pool.sample(request, self._key)

    async def score(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str = ""
    ) -> list[float]:
        """Return summed log-probabilities of `continuations`; see `AdapterEngine.score`."""
        return await self._pool.score(prefix, continuations, adapter, self._key)

    async def load_adapters(self, adapters: Mapping[str, Path]) -> None:
        """Replace the adapters; see `AdapterEngine.load_adapters`."""
        await self._pool.load_adapters(adapters, self._key)

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Replace the weights by those of a folder, which every node must be able to read."""
        if not isinstance(weights, Path):
            raise EngineError("a model beside the pool's own takes its weights from a folder")
        await self._pool.load_folder(weights, self._key)

    async def close(self) -> None:
        """End the engines of this model; may be called twice."""
        with suppress(ParleyError):  # a process, or Ray, that is gone has no engine to end
            await self._pool.close_model(self._key)
