"""Sampling: vLLM, Transformers and scripted engines on tokens; ChatModel on messages.

`make` builds an engine by name. An engine's module, and with it torch or vLLM, is imported only then.
"""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from training.engines.adapters import AdapterEngine
from training.engines.base import EngineOptions
from training.engines.choice import REGISTRY, check_parts, choose


def make(name: str, model: str | Path, **options: Any) -> AdapterEngine:
    """Return engine `name` (or `auto`) on a registered model or folder.

    The options are those of `EngineOptions`.
    Raises `BadInput` for an unknown engine or model, or one that cannot be split.
    """
    name, made_with = choose(name), EngineOptions(**options)
    check_parts(name, made_with.tensor_parallel)
    engine: AdapterEngine = resolve_name(REGISTRY[name].location)(model, made_with)
    return engine
