"""The engines by name, and the choice among them, which imports none, so that reading a configuration is fast."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple

from training.errors import BadInput


class EngineSpec(NamedTuple):
    """An engine: its class `module:name`, which takes a model and `EngineOptions`, and the package that it needs.

    `splits`: whether it can run one model on several GPUs (`cluster.tensor_parallel`).
    """

    location: str
    package: str
    splits: bool = False


REGISTRY = {
    "vllm": EngineSpec("training.engines.local.vllm:VllmEngine", "vllm", splits=True),
    "transformers": EngineSpec("training.engines.local.transformers:TransformersEngine", "transformers"),
}
"""The engines by name. The first whose package is installed is preferred."""
PREFERRED, FALLBACK = "vllm", "transformers"
"""The engine that is chosen where it is installed, and the one where none is, which then says what is missing."""
AUTO = "auto"


def choose(name: str = AUTO) -> str:
    """Return the name of the engine to use; `auto` is the first that is installed. Raises `BadInput`."""
    if name == AUTO:
        return next((engine for engine in REGISTRY if _installed(engine)), FALLBACK)
    if name not in REGISTRY:
        raise BadInput(f"unknown engine {name!r}; known: auto, {', '.join(REGISTRY)}", "engine.name")
    if not _installed(name):
        raise BadInput(f"{name} is not installed; use the transformers engine, or run `make setup`", "engine.name")
    return name


def _installed(name: str) -> bool:
    return importlib.util.find_spec(REGISTRY[name].package) is not None
