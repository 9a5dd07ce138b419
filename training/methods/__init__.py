"""The methods, which turn scored episodes into credit. A new method is its module and a line in `REGISTRY`."""

from __future__ import annotations

from typing import Any

from training.errors import BadInput
from training.methods.base import Method, MethodConfig
from training.methods.csp import CspConfig
from training.methods.epo import EpoConfig
from training.methods.listen_speak import ListenSpeakConfig
from training.methods.mars import MarsConfig
from training.methods.omar import OmarConfig
from training.plugins import Registry


def _check(name: str, loaded: Any) -> type[MethodConfig]:
    if not (isinstance(loaded, type) and issubclass(loaded, MethodConfig)):
        raise BadInput("is no subclass of MethodConfig")
    if loaded.model_fields["name"].default != name:
        raise BadInput(f"its field name must be Literal[{name!r}] with that default")
    return loaded


REGISTRY: Registry[type[MethodConfig]] = Registry(
    "parley.methods",
    {"omar": OmarConfig, "mars": MarsConfig, "listen_speak": ListenSpeakConfig, "csp": CspConfig, "epo": EpoConfig},
    _check,
)
"""Configuration classes by name, those of installed distributions last; `REGISTRY[name](…).build()` is the method."""

__all__ = ["REGISTRY", "Method", "MethodConfig"]
