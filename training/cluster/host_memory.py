"""The memory of machines, beside their GPUs, that a run on several processes needs: its driver's, and Ray's store's.

The new weights of a step pass through the object store of the first rank's node, where they stay until their games are
played: those of each of `cluster.lag` + 1 steps, or of two with in-flight updates. Engines that start again read them
there. The driver reads and writes weights and optimizer state in chunks, and holds none. What games, their records and
Ray itself take is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from training.cluster.memory import GIB, SIZES, Line, Memory

if TYPE_CHECKING:
    from training.cluster.shapes import ModelShape
    from training.config import RunConfig

DRIVER_OVERHEAD = GIB
"""Python with torch, Transformers and Ray: 0.5 to 0.8 GiB, rounded up."""
CHUNK = 2**26
"""Bytes of a chunk of weights (`training.engines.chunks`)."""
CHUNKS = 2
"""Chunks in the driver at once while a checkpoint is written: the one that is written, and the next."""


def driver(config: RunConfig, shape: ModelShape) -> Memory:
    """Return the memory of the driver of a run whose engines and ranks are processes of their own."""
    lines = [
        Line("Python and libraries", DRIVER_OVERHEAD, "torch, Transformers, Ray: 1 GiB"),
        Line("chunks of a checkpoint", CHUNKS * CHUNK, f"{CHUNKS} × 64 MiB, while it is written"),
    ]
    if config.cluster.lag:
        largest = shape.vocabulary * shape.hidden
        words = f"4 bytes × {largest:,}: older weights of a resumed run are read tensor by tensor"
        lines.append(Line("largest tensor", 4 * largest, words))
    return Memory(tuple(lines))


def store(config: RunConfig, shape: ModelShape) -> Memory:
    """Return what is kept in Ray's store on the node of the first rank; other nodes have a copy while they load it."""
    size, section = SIZES[config.engine.dtype], config.cluster
    steps = section.lag + 1
    versions = "the newest weights" if steps == 1 else f"the weights of {steps} steps, cluster.lag + 1"
    if section.in_flight_updates:
        steps, versions = 2, "the newest weights, while the engines have those before"
    words = f"{size} bytes × {shape.parameters:,} parameters × {steps}: {versions}"
    return Memory((Line("weights for the engines", size * shape.parameters * steps, words),))


def engine(config: RunConfig, shape: ModelShape) -> Memory:
    """Return the memory of the process of a split engine, whose workers have the model; of another one, none."""
    if config.cluster.tensor_parallel == 1:
        return Memory(())
    largest = SIZES[config.engine.dtype] * shape.vocabulary * shape.hidden
    words = f"64 MiB, or the largest tensor: {largest:,} bytes, which the workers read together"
    return Memory(
        (
            Line("Python and libraries", DRIVER_OVERHEAD, "torch, vLLM, Ray: 1 GiB"),
            Line("weights that are handed over", max(CHUNK, largest), words, "load"),
        )
    )
