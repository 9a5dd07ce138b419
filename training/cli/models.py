"""`python -m training models`: the register of base models, and preparing one."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from training import bases


def main(arguments: Namespace) -> dict[str, Any]:
    """List the register, or prepare one model; raise `BadInput` for an unknown name."""
    if arguments.action == "prepare":
        from training.learn.prepare import prepare

        return {"name": arguments.name, "folder": str(prepare(arguments.name, force=arguments.force))}
    models = [
        {**entry.model_dump(), "prepared": bases.is_prepared(entry), "folder": str(entry.folder)}
        for entry in bases.REGISTRY.values()
    ]
    return {"models": models}


def show(result: dict[str, Any]) -> str:
    """Return one line a model, or the folder of the prepared one."""
    if "folder" in result:
        return f"{result['name']} is ready in {result['folder']}"
    width = max(len(model["name"]) for model in result["models"])
    lines = []
    for model in result["models"]:
        state = "ready" if model["prepared"] else "not prepared"
        note = f"; {model['note']}" if model["note"] else ""
        lines.append(f"{model['name']:{width}}  {model['parameters'] / 1e6:8,.0f} M parameters  {state}{note}")
    return "\n".join(lines)
