"""Sampling: vLLM, Transformers and scripted engines on tokens; ChatModel on messages.

`make` builds an engine by name. An engine's module, and with it torch or vLLM, is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from training.engines.adapters import AdapterEngine
from training.engines.base import EngineOptions
from training.engines.choice import choose


def _vllm(model: str | Path, options: EngineOptions) -> AdapterEngine:
    from training.engines.local.vllm import VllmEngine

    return VllmEngine(model, options)


def _transformers(model: str | Path, options: EngineOptions) -> AdapterEngine:
    from training.engines.local.transformers import TransformersEngine

    return TransformersEngine(model, options)


REGISTRY: dict[str, Callable[..., AdapterEngine]] = {"vllm": _vllm, "transformers": _transformers}
"""Engines that sample from a model folder. All take `model` and `EngineOptions`."""


def make(name: str, model: str | Path, **options: Any) -> AdapterEngine:
    """Return engine `name` (or `auto`) on a registered model or folder.

    The options are those of `EngineOptions`. Raises `BadInput` for an unknown engine or model.
    """
    return REGISTRY[choose(name)](model, EngineOptions(**options))
