"""Running past one machine: what its parts gain, measured on this machine, each for itself.

`PARTS` names them; a part is a module with `measure(arguments)`, which returns JSON data, and `line(result)`.
"""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from typing import Any

from bench import site_conditions

PARTS = {
    "packing": "bench.packing",
    "engines": "bench.several_engines",
    "ranks": "bench.several_ranks",
    "overlap": "bench.overlap",
    "sync": "bench.sync",
    "model": "bench.step_time",
    "memory": "bench.process_memory",
    "gpu": "bench.gpu",
}
ON_WISH = ("gpu",)
"""Parts that are measured only where they are named."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the results of the chosen parts."""
    chosen = [arguments.part] if arguments.part else [name for name in PARTS if name not in ON_WISH]
    return site_conditions.measured(
        lambda: {
            "measurement": "scale",
            "parts": {name: import_module(PARTS[name]).measure(arguments) for name in chosen},
        }
    )


def show(result: dict[str, Any]) -> str:
    """Return the lines of each part."""
    return "\n".join(f"{name}: {import_module(PARTS[name]).line(each)}" for name, each in result["parts"].items())
