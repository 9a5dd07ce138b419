"""`python -m training models`: lists and prepares the registered base models."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

from training import bases

QUIET = {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
"""Environment that disables the libraries' progress bars, which would fill a log file; set before their import."""


def main(arguments: Namespace) -> dict[str, Any]:
    """List the models, or prepare some of them in sequence; raise `BadInput` for an unknown name."""
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
    """Return one line per model; for prepared ones, their folders."""
    if "prepared" in result:
        return "\n".join(f"{model['name']} is ready in {model['folder']}" for model in result["prepared"])
    width = max(len(model["name"]) for model in result["models"])
    lines = []
    for model in result["models"]:
        state = "ready" if model["prepared"] else "not prepared"
        note = f"; {model['note']}" if model["note"] else ""
        lines.append(f"{model['name']:{width}}  {model['parameters'] / 1e6:8,.0f} M parameters  {state}{note}")
    return "\n".join(lines)
