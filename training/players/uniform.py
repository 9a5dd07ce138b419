"""A seat that moves at random where its moves can be listed, and samples from the model where they cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.engines.base import Sample, SampleRequest
from training.players.model import ModelPlayer
from training.records import Action
from training.seeding import rng


class UniformPlayer(ModelPlayer):
    """A `ModelPlayer` whose replies among listed moves are drawn uniformly, by the seed of the request.

    The engine is not asked for them. In the trace their tokens are forced ones, each the only one allowed at its place,
    so that no term of the loss reads what the policy has not sampled.
    """

    _drawn = 0

    def _choices(self, actions: Sequence[Action], seed: int) -> tuple[tuple[int, ...], ...]:
        """Return the reply that was drawn, none where the reply is free."""
        listed = super()._choices(actions, seed)
        return (rng(seed, "move").choice(listed),) if listed else ()

    async def _sample(self, request: SampleRequest) -> Sample:
        if not request.choices:
            return await super()._sample(request)
        self._drawn += 1
        [drawn] = request.choices
        return Sample(drawn, (0.0,) * len(drawn), "stop")

    def totals(self) -> Mapping[str, float]:
        """Return those of `ModelPlayer`, and the number of moves that were drawn."""
        return {**super().totals(), "random_moves": self._drawn}
