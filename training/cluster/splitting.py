"""Whether a model can be split over the GPUs, or groups of cores, of one engine (`cluster.tensor_parallel`).

Raises `BadInput`, before anything is started.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from training import bases
from training.cluster import shapes
from training.engines.choice import check_parts
from training.errors import BadInput

if TYPE_CHECKING:
    from training.cluster.shapes import ModelShape
    from training.config import RunConfig

FIELD = "cluster.tensor_parallel"


def obstacle(shape: ModelShape, parts: int) -> str:
    """Return why vLLM cannot split a model into so many parts; an empty text if it can.

    Each part has as many attention heads, and as many columns of the feed-forward layers. KV heads are divided too, or,
    where there are more parts, repeated.
    """
    for count, noun in ((shape.heads, "attention heads"), (shape.intermediate, "columns of the feed-forward layers")):
        if count % parts:
            return f"{parts} does not divide the {count} {noun} of {shape.name}"
    if shape.kv_heads % parts and parts % shape.kv_heads:
        return f"{parts} neither divides nor is a multiple of the {shape.kv_heads} KV heads of {shape.name}"
    return ""


def check(config: RunConfig, shape: ModelShape) -> None:
    """Raise `BadInput` for an engine that splits no model, or for a number of parts that does not suit a model.

    `shape` is the learner's. Engines of other models are split into as many parts.
    """
    check_parts(config.engine.name, config.cluster.tensor_parallel)
    parts = config.cluster.tensor_parallel
    if why := obstacle(shape, parts):
        raise BadInput(f"{why}: set a number that does", FIELD)
    for where, other in _others(config) if parts > 1 else ():
        if why := obstacle(other, parts):
            raise BadInput(f"{why} ({where}): set a number that does, or name another model there", FIELD)


def _others(config: RunConfig) -> Iterator[tuple[str, ModelShape]]:
    """Yield the shapes of the models that a run loads beside the learner, each with its field.

    Left out is what names no model, and a model that is not here or cannot be counted: its own field is refused then.
    """
    named, evaluate = [*config.sources()], config.evaluate
    if evaluate.every or evaluate.at_end:
        named.append(("evaluate.opponent", evaluate.opponent))
        if evaluate.opposition == "common":
            named.append(("evaluate.common", evaluate.common))
    if config.calibration.sets:
        named.append(("calibration.base", config.calibration.base))
    for where, source in named:
        if bases.find(source) is not None or bases.is_folder(source):
            with suppress(BadInput):
                yield where, shapes.of_model(source)
