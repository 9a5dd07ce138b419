"""Adapters beside one model's weights: which folders can be served so, and an adapter as an engine of its own.

Importing this imports no torch.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from training import bases
from training.engines.base import Engine, Sample, SampleRequest, Weights
from training.errors import BadInput, EngineError

LINEAR = frozenset(("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"))
"""The layers that all engines serve adapters of."""
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The largest ranks of adapters that vLLM can be made for."""


def served_rank(rank: int) -> int:
    """Return the least rank that vLLM can be made for and that has room for an adapter of this one."""
    return next((each for each in RANKS if each >= rank), RANKS[-1])


UNUSUAL = (
    "use_dora",
    "use_rslora",
    "fan_in_fan_out",
    "modules_to_save",
    "rank_pattern",
    "alpha_pattern",
    "layers_pattern",
)
"""Settings of PEFT with which an adapter is no plain LoRA."""


class AdapterEngine(Engine, Protocol):
    """An engine that was made with the option `adapters`, and serves adapters beside its weights, which it keeps."""

    async def score(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str = ""
    ) -> list[float]:
        """See `Engine.score`; under an adapter, or without any."""

    async def load_adapters(self, adapters: Mapping[str, Path]) -> None:
        """Serve these adapters by name, and no others; forget what was read. Raises `BadInput` for what is none."""


@dataclass(frozen=True, slots=True)
class Lora:
    """A plain LoRA adapter: what it adds is scale · B A x."""

    rank: int
    scale: float


def lora_of(folder: Path) -> Lora | None:
    """Return the sizes of the LoRA adapter in a folder; None if it holds anything else."""
    file = folder / "adapter_config.json"
    if not file.is_file():
        return None
    config = json.loads(file.read_text("utf-8"))
    targets = config.get("target_modules")
    plain = config.get("peft_type") == "LORA" and config.get("bias", "none") == "none"
    if not plain or any(config.get(name) for name in UNUSUAL) or not isinstance(targets, list):
        return None
    if not {str(name).rpartition(".")[2] for name in targets} <= LINEAR:
        return None
    rank = int(config["r"])
    return Lora(rank, config["lora_alpha"] / rank)


class Adapted:
    """An adapter of an engine, as an `Engine`: a policy of its own that shares the weights."""

    def __init__(self, engine: AdapterEngine, name: str) -> None:
        self._engine, self._name = engine, name

    async def sample(self, request: SampleRequest) -> Sample:
        """See `Engine.sample`."""
        return await self._engine.sample(replace(request, adapter=self._name))

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """See `Engine.score`."""
        return await self._engine.score(prefix, continuations, self._name)

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Raise `EngineError`: adapters are loaded by `load_adapters`, all at once."""
        raise EngineError("an adapter takes no weights of its own")

    async def close(self) -> None:
        """Do nothing: the engine serves others, too."""


def check_lora(folder: Path) -> Lora:
    """Return the LoRA adapter in a folder, whose files are verified; raise `BadInput` if it holds anything else."""
    lora = lora_of(bases.verified(folder))
    if lora is None:
        raise BadInput("no plain LoRA adapter, so it cannot be served beside others", str(folder))
    return lora


def check_known(name: str, known: Collection[str] = ()) -> None:
    """Raise `BadInput` for a request that names an adapter which the engine does not have."""
    if name and name not in known:
        raise BadInput(f"this engine has no adapter {name!r}; it has {', '.join(sorted(known)) or 'none'}", "adapter")


def check_adapters(adapters: Collection[str], most: int) -> None:
    """Raise `BadInput` for more adapters than an engine was made for."""
    if len(adapters) > most:
        raise BadInput(f"{len(adapters)} adapters are more than the engine was made for: {most}", "adapters")
