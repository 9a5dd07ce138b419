"""`python -m training plan`: which process of a training run gets which GPU, and the memory that each needs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training import config as configs
from training.cli import WRONG_INPUT
from training.cluster import layout, memory, shapes
from training.cluster.memory import GIB, MARGIN
from training.cluster.section import AUTO, ClusterSection
from training.config import RunConfig
from training.errors import BadInput

WHEN = {
    "always": "",
    "forward-backward": "forward and backward",
    "logits": "forward and backward, (a)",
    "head": "forward and backward, (b)",
    "layer": "forward and backward, (c)",
    "step": "(d)",
    "load": "(e)",
}
"""What the table says about lines that are not always there."""
EXPLAINED = (
    "Of (a), (b) and (c) only the largest counts. (d), the optimizer's step, and (e), sending, loading and saving "
    "weights, come after forward and backward passes, without what these need."
)


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the layout with its arithmetic, or what does not fit; raise `BadInput` for what cannot be planned."""
    config = configs.load(arguments.config)
    if config.kind != "train":
        raise BadInput(f"only training runs are planned, and this is of kind {config.kind}", "kind")
    chosen = "cluster" not in config.model_fields_set
    if chosen:
        config = config.model_copy(update={"cluster": ClusterSection(engines=AUTO, learners=AUTO)})
    shape = _shape(config, arguments)
    result: dict[str, Any] = {
        "model": shape.name,
        "parameters": shape.parameters,
        "gpus": arguments.gpus,
        "gpus_per_node": arguments.gpus_per_node,
        "memory_gib": arguments.memory,
        "notes": memory.notes(config, shape),
    }
    try:
        planned = layout.plan(
            config, shape, arguments.gpus, arguments.memory, arguments.gpus_per_node, others=config.models_beside
        )
    except layout.DoesNotFit as error:
        refused = {"process": error.process, "bytes": error.memory.total, "memory": layout.lines(error.memory)}
        reason = {"kind": "input", "where": error.where, "why": error.why}
        return {"exit": WRONG_INPUT, "fits": False, **result, **refused, "advice": [*error.advice], "error": reason}
    toml = _toml(planned.section) if chosen else ""
    return {"fits": True, **result, **layout.as_dict(planned), "toml": toml}


def _shape(config: RunConfig, arguments: Namespace) -> shapes.ModelShape:
    if arguments.shape is None:
        return shapes.of_model(config.model.base, Path(arguments.config).absolute().parent)
    try:
        return shapes.named(arguments.shape)
    except BadInput as error:
        raise BadInput(error.why, "--shape" if error.where == "shape" else error.where) from error


def _toml(section: ClusterSection) -> str:
    """Return the lines of a configuration that state the numbers that were chosen."""
    return "\n".join(["[cluster]", f"learners = {section.learners}", f"engines = {section.engines}"])


def show(result: dict[str, Any]) -> str:
    """Return the layout and the arithmetic as tables."""
    nodes = -(-result["gpus"] // result["gpus_per_node"])
    where = f"{_count(result['gpus'], 'GPU')} of {result['memory_gib']:g} GiB on {_count(nodes, 'node')}"
    planned = result["memory_gib"] * (1 - MARGIN)
    lines = [
        f"{result['model']}, {result['parameters']:,} parameters; {where}",
        f"planned of each GPU: {planned:.1f} GiB; {MARGIN:.0%} stay free",
        "",
    ]
    if not result["fits"]:
        name = result["process"]
        lines += _table(name, result["memory"], result["bytes"])
        lines += _notes(result["notes"])
        advice = result["advice"]
        lines += ["", f"Does not fit: {name} needs {result['bytes'] / GIB:.1f} GiB of {planned:.1f}."]
        return "\n".join([*lines, *(["It would fit with:", *(f"- {each}" for each in advice)] if advice else [])])
    lines.append(f"{'process':14}{'node':>4}  {'GPU':8}{'GiB':>7}")
    for process in result["processes"]:
        gpus = ", ".join(map(str, process["gpus"])) or "-"
        size = f"{process['bytes'] / GIB:.1f}" if process["bytes"] else "-"
        lines.append(f"{process['name']:14}{process['node']:>4}  {gpus:8}{size:>7}")
    totals = {each["name"].split()[0]: each["bytes"] for each in result["processes"]}
    for name, title in (("learner", "a learner rank"), ("engine", "an engine, on each of its GPUs")):
        lines += ["", *_table(title, result["memory"][name], totals[name])]
    for name, title in (("driver", "the driver, on its machine"), ("store", "Ray's store, on the first rank's node")):
        if rows := result["memory"].get(name):
            lines += ["", *_table(title, rows, sum(row["bytes"] for row in rows))]
    if result["shared"]:
        lines += ["", f"Together on one GPU: {(totals['learner'] + totals['engine']) / GIB:.1f} GiB."]
    lines += _notes(result["notes"])
    if result["spare"]:
        names = ", ".join(f"{each['gpu']} of node {each['node']}" for each in result["spare"])
        lines += ["", f"Left over: GPU {names}"]
    return "\n".join([*lines, *(["", "For the configuration:", "", result["toml"]] if result["toml"] else [])])


def _notes(notes: Sequence[str]) -> list[str]:
    return ["", *(f"Note: {note}." for note in notes)] if notes else []


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _table(title: str, rows: Sequence[Mapping[str, Any]], total: int) -> list[str]:
    """Return the lines of one process's memory with its total; of lines that never coincide, the larger counts."""
    width = max(len(row["name"]) for row in rows) + 2
    table = [f"Memory of {title}:"]
    for row in rows:
        when = f"  [{WHEN[row['when']]}]" if WHEN[row["when"]] else ""
        table.append(f"  {row['name']:{width}}{row['bytes'] / GIB:8.2f} GiB{when}  {row['formula']}")
    table.append(f"  {'at most':{width}}{total / GIB:8.2f} GiB")
    if any(row["when"] != "always" for row in rows):
        table.append(f"  {EXPLAINED}")
    return table
