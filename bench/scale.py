"""Running past one machine: what its parts gain, measured on this machine, each for itself.

`PARTS` names them; a part is a module with `measure(arguments)`, which returns JSON data, and `line(result)`. Parts
differ in what they can afford: `SIZES` has what the command line leaves open.
"""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from bench import site_conditions
from training.store import write_json

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
USUAL: dict[str, Any] = {"model": "smollm2-135m", "tokens": 8192, "games": 4, "rounds": 3}
SIZES: dict[str, dict[str, Any]] = {
    "packing": {"tokens": 4096, "games": 2},
    "ranks": {"tokens": 2048, "games": 1},
    "overlap": {"model": "tiny", "rounds": 5},
    "sync": {"tokens": 2048},
    "model": {"model": "tiny"},
    "memory": {"tokens": 512},
}
"""Values of arguments that are None, by part, where they are not the usual ones."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the results of the chosen parts; `out` has those so far after each."""
    chosen = arguments.part or [name for name in PARTS if name not in ON_WISH]
    began, load = datetime.now(UTC), site_conditions.load_now()
    result: dict[str, Any] = {"measurement": "scale", "parts": {}}
    for name in chosen:
        result["parts"][name] = import_module(PARTS[name]).measure(sized(arguments, name))
        loads = {"load_before": load, "load_after": site_conditions.load_now()}
        result["conditions"] = {**site_conditions.conditions(began), **loads}
        if arguments.out is not None and name not in ON_WISH:
            write_json(arguments.out, result)
    return result


def sized(arguments: Namespace, part: str) -> Namespace:
    """Return the arguments of a part."""
    sizes = {**USUAL, **SIZES.get(part, {})}
    left = {name: value for name, value in sizes.items() if getattr(arguments, name) is None}
    return Namespace(**{**vars(arguments), **left})


def show(result: dict[str, Any]) -> str:
    """Return the lines of each part."""
    return "\n".join(f"{name}: {import_module(PARTS[name]).line(each)}" for name, each in result["parts"].items())
