"""`python -m training methods`: lists the methods of credit assignment."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from training.methods import REGISTRY


def main(arguments: Namespace) -> dict[str, Any]:
    """Return every registered method with its summary."""
    return {"methods": [{"name": name, "summary": config.summary} for name, config in REGISTRY.items()]}


def show(result: dict[str, Any]) -> str:
    """Return one line per method."""
    width = max(len(method["name"]) for method in result["methods"])
    return "\n".join(f"{method['name']:{width}}  {method['summary']}" for method in result["methods"])
