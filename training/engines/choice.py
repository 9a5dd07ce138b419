"""Chooses the engine by the installed packages, without importing one, so that reading a configuration is fast."""

from __future__ import annotations

import importlib.util

from training.errors import BadInput

NAMES = ("vllm", "transformers")
"""The engines in order of preference."""


def choose(name: str = "auto") -> str:
    """Return the name of the engine to use; `auto` is the first that is installed. Raises `BadInput`."""
    if name == "auto":
        return next((engine for engine in NAMES if _installed(engine)), NAMES[-1])
    if name not in NAMES:
        raise BadInput(f"unknown engine {name!r}; known: auto, {', '.join(NAMES)}", "engine.name")
    if not _installed(name):
        raise BadInput(f"{name} is not installed; use the transformers engine, or run `make setup`", "engine.name")
    return name


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
