"""Whether a model can be split over the GPUs, or groups of cores, of one engine (`cluster.tensor_parallel`).

Raises `BadInput`, before anything is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from training.engines.choice import REGISTRY
from training.errors import BadInput

if TYPE_CHECKING:
    from training.cluster.shapes import ModelShape
    from training.config import RunConfig

FIELD = "cluster.tensor_parallel"


def check_engine(config: RunConfig) -> None:
    """Raise `BadInput` for an engine that splits no model."""
    spec = REGISTRY.get(config.engine.name)  # auto has none yet
    if config.cluster.tensor_parallel > 1 and spec is not None and not spec.splits:
        raise BadInput("only vLLM splits a model over GPUs: set engine.name = vllm, or 1 here", FIELD)


def obstacle(shape: ModelShape, parts: int) -> str:
    """Return why vLLM cannot split a model into so many parts; an empty text if it can.

    Each part has as many attention heads, and as many columns of the feed-forward layers. Heads of keys and values are
    divided too, or, where there are more parts, repeated.
    """
    for count, noun in ((shape.heads, "attention heads"), (shape.intermediate, "columns of the feed-forward layers")):
        if count % parts:
            return f"{parts} does not divide the {count} {noun} of {shape.name}"
    if shape.kv_heads % parts and parts % shape.kv_heads:
        return f"{parts} neither divides the {shape.kv_heads} heads of keys of {shape.name} nor is their multiple"
    return ""


def check(config: RunConfig, shape: ModelShape) -> None:
    """Raise `BadInput` for an engine that splits no model, or for a number of parts that does not suit the model."""
    check_engine(config)
    if why := obstacle(shape, config.cluster.tensor_parallel):
        raise BadInput(f"{why}: set a number that does", FIELD)
