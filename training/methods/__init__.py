"""The methods: each one small file that turns scored episodes into credit. A new one is its file and a line here."""

from __future__ import annotations

from training.methods.base import Method, MethodConfig
from training.methods.omar import OmarConfig

REGISTRY: dict[str, type[MethodConfig]] = {"omar": OmarConfig}
"""Configuration classes by name; `REGISTRY[name](…).build()` is the method."""

__all__ = ["REGISTRY", "Method", "MethodConfig"]
