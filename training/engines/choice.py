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


def check_parts(name: str, parts: int) -> None:
    """Raise `BadInput` for a model in several parts on an engine that splits none; `auto` has chosen none yet."""
    if parts > 1 and name in REGISTRY and not REGISTRY[name].splits:
        able = " or ".join(engine for engine, spec in REGISTRY.items() if spec.splits)
        raise BadInput(f"{name} does not split a model: set engine.name = {able}, or 1 here", "cluster.tensor_parallel")


def _installed(name: str) -> bool:
    return importlib.util.find_spec(REGISTRY[name].package) is not None
