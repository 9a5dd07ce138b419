"""`python -m training models`: the register of base models, and preparing one."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

from training import bases

QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
"""Read when the libraries are imported: no progress bars, which in a file are lines upon lines."""


def main(arguments: Namespace) -> dict[str, Any]:
    """List the register, or prepare one model; raise `BadInput` for an unknown name."""
    if arguments.action == "prepare":
        if not sys.stderr.isatty():
            os.environ.update(QUIET)
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
