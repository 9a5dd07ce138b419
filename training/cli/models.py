"""`python -m training models`: the register of base models, and preparing some of it."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

from training import bases

QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
"""Read when the libraries are imported: no progress bars, which in a file are lines upon lines."""


def main(arguments: Namespace) -> dict[str, Any]:
    """List the register, or prepare models one after the other; raise `BadInput` for an unknown name."""
    if arguments.action == "prepare":
        if not sys.stderr.isatty():
            os.environ.update(QUIET)
        from training.learn.prepare import prepare

        folders = {name: prepare(name, force=arguments.force) for name in arguments.names}
        return {"prepared": [{"name": name, "folder": str(folder)} for name, folder in folders.items()]}
    models = [
        {**entry.model_dump(), "prepared": bases.is_prepared(entry), "folder": str(entry.folder)}
        for entry in bases.REGISTRY.values()
    ]
    return {"models": models}


def show(result: dict[str, Any]) -> str:
    """Return one line a model; of those just prepared, where they are."""
    if "prepared" in result:
        return "\n".join(f"{model['name']} is ready in {model['folder']}" for model in result["prepared"])
    width = max(len(model["name"]) for model in result["models"])
    lines = []
    for model in result["models"]:
        state = "ready" if model["prepared"] else "not prepared"
        note = f"; {model['note']}" if model["note"] else ""
        lines.append(f"{model['name']:{width}}  {model['parameters'] / 1e6:8,.0f} M parameters  {state}{note}")
    return "\n".join(lines)
