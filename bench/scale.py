"""Running past one machine: what its parts gain, measured on this machine, each for itself.

`PARTS` names them; a part is a module with `measure(arguments)`, which returns JSON data, and `line(result)`. Parts
differ in what they can afford: `SIZES` has what the command line leaves open.
"""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import site_conditions
from training.errors import BadInput
from training.store import from_json, write_json

PARTS = {
    "packing": "bench.packing",
    "engines": "bench.several_engines",
    "ranks": "bench.several_ranks",
    "overlap": "bench.overlap",
    "sync": "bench.sync",
    "model": "bench.step_time",
    "memory": "bench.process_memory",
    "checkpoints": "bench.checkpoints",
    "transfer": "bench.transfer",
    "gpu": "bench.gpu",
}
OPT_IN = ("gpu",)
"""Parts that are measured only where they are named."""
USUAL: dict[str, Any] = {"model": "smollm2-135m", "dtype": "float32", "tokens": 8192, "games": 4, "rounds": 3}
SIZES: dict[str, dict[str, Any]] = {
    "packing": {"tokens": 4096, "games": 2, "rounds": 2},
    "ranks": {"tokens": 4096, "games": 2},
    "overlap": {"model": "tiny", "tokens": 2048, "rounds": 5},
    "sync": {"tokens": 2048},
    "model": {"model": "tiny"},
    "memory": {"tokens": 2048},
    "checkpoints": {"tokens": 1024, "rounds": 5},
    "transfer": {"rounds": 5},
}
"""Values of arguments that are None, by part, where they are not the usual ones."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the results of the chosen parts, each with its conditions; `out` has those so far after each.

    In a file that is there, these take the place of the same parts, and the others are kept.
    """
    chosen = arguments.part or [name for name in PARTS if name not in OPT_IN]
    earlier = _parts(arguments.out) if arguments.out is not None and set(chosen) - set(OPT_IN) else {}
    measured: dict[str, Any] = {}
    for name in chosen:
        began, load = datetime.now(UTC), site_conditions.load_now()
        part = import_module(PARTS[name]).measure(sized(arguments, name))
        loads = {"load_before": load, "load_after": site_conditions.load_now()}
        measured[name] = {
            **part,
            "measured": {**site_conditions.conditions(began), **loads, "engine": arguments.engine},
        }
        if arguments.out is not None and name not in OPT_IN:
            parts = {**earlier, **measured}
            ordered = {name: parts[name] for name in PARTS if name in parts}
            write_json(arguments.out, {"measurement": "scale", "parts": ordered})
    return {"measurement": "scale", "parts": measured}


def _parts(file: Path) -> dict[str, Any]:
    """Return the parts in a file of earlier results; raise `BadInput` for another file."""
    if not file.is_file():
        return {}
    earlier = from_json(file.read_bytes(), str(file))
    if not isinstance(earlier, dict) or earlier.get("measurement") != "scale":
        raise BadInput("it holds other results: name another file", str(file))
    parts: dict[str, Any] = earlier["parts"]
    return parts


def sized(arguments: Namespace, part: str) -> Namespace:
    """Return the arguments of a part."""
    sizes = {**USUAL, **SIZES.get(part, {})}
    left = {name: value for name, value in sizes.items() if getattr(arguments, name) is None}
    return Namespace(**{**vars(arguments), **left})


def show(result: dict[str, Any]) -> str:
    """Return the lines of each part."""
    return "\n".join(f"{name}: {import_module(PARTS[name]).line(each)}" for name, each in result["parts"].items())
