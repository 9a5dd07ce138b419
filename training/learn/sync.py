"""From the trainer's weights to the engine's: after every step, and once at the start of an attempt."""

from __future__ import annotations

from training.engines.base import Engine
from training.learn import models
from training.learn.policy import Policy


async def push(policy: Policy, engine: Engine) -> None:
    """Give the engine the policy's present weights, adapters added in; raise `EngineError` if it cannot take them."""
    await engine.load_weights(models.merged_weights(policy.model))
