"""`python -m training plan`: whether a run fits its GPUs, or a machine without, and what each process needs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training import config as configs
from training.cli import WRONG_INPUT
from training.cluster import fit, layout, memory, shapes
from training.cluster.devices import memory_free
from training.cluster.memory import GIB, MARGIN, Line, Memory
from training.cluster.section import AUTO, ClusterSection
from training.config import RunConfig
from training.engines import choice
from training.errors import BadInput

WHEN = {
    "forward-backward": "forward and backward",
    "logits": "forward and backward, a",
    "head": "forward and backward, b",
    "layer": "forward and backward, c",
    "step": "optimizer's step",
    "load": "sending, loading, saving",
}
"""When a line is there, if not all the time. Of phases, and of a, b and c within one, only the largest counts."""
GPU_GIB = 80.0
"""Memory of a GPU that is planned for unless another is stated."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the layout with its arithmetic, or what does not fit; raise `BadInput` for what cannot be planned."""
    config = configs.load(arguments.config)
    if config.kind != "train":
        raise BadInput(f"only training runs are planned, and this is of kind {config.kind}", "kind")
    chosen = "cluster" not in config.model_fields_set
    if chosen:
        config = config.model_copy(update={"cluster": ClusterSection(engines=AUTO, learners=AUTO)})
    config = _with_engine(config, on_gpus=arguments.gpus > 0)
    shape = _shape(config, arguments)
    gib = arguments.memory or (GPU_GIB if arguments.gpus else round(memory_free() / GIB, 1))
    result: dict[str, Any] = {
        "model": shape.name,
        "parameters": shape.parameters,
        "engine": config.engine.name,
        "gpus": arguments.gpus,
        "gpus_per_node": arguments.gpus_per_node,
        "memory_gib": gib,
        "notes": memory.notes(config, shape, gpus=arguments.gpus > 0),
    }
    if not arguments.gpus:
        return result | _on_machine(config, shape, gib)
    try:
        planned = layout.plan(config, shape, arguments.gpus, gib, arguments.gpus_per_node)
    except layout.DoesNotFit as error:
        return result | _refused(error, error.shortfalls)
    toml = _toml(planned.section) if chosen else ""
    return {"fits": True, **result, **layout.as_dict(planned), "toml": toml}


def _on_machine(config: RunConfig, shape: shapes.ModelShape, gib: float) -> dict[str, Any]:
    """Return the processes of a run on a machine without GPUs, and whether they fit so much memory."""
    machine = fit.on_machine(config, shape)
    section, whole = machine.section, machine.memory
    sizes = [("driver", machine.driver.total)]
    sizes += [(f"learner {number}", machine.rank.total) for number in range(section.learners)]
    sizes += [(f"engine {number}", machine.engine) for number in range(section.engines)]
    parts = {"learner": machine.rank, "engine": machine.worker, "scheduler": machine.scheduler}
    parts |= {"driver": machine.driver, "store": machine.store}
    planned: dict[str, Any] = {
        "cluster": section.to_dict(),
        "shared": section.alone,
        "processes": [{"name": name, "node": 0, "gpus": [], "bytes": size} for name, size in sizes],
        "cores": 1 if section.alone else section.learners + section.engines * section.tensor_parallel,
        "spare": [],
        "toml": "",
    }
    lines = {name: layout.lines(each) for name, each in parts.items() if each.lines}
    if whole.total <= gib * GIB:
        return {"fits": True, **planned, "memory": {"machine": layout.lines(whole), **lines}}
    helps = fit.advice(config, shape, gib)
    shortfall = layout.Shortfall("the machine", whole, "cluster", tuple(helps))
    of_driver = f", of which the driver needs {machine.driver.total / GIB:.1f}" if machine.driver.lines else ""
    why = machine.refusal(f"the machine has {gib:g} GiB{of_driver}", helps)
    refused = _refused(BadInput(why, "cluster"), [shortfall])
    return {**planned, **refused, "parts": lines}


def _refused(error: BadInput, shortfalls: Sequence[layout.Shortfall]) -> dict[str, Any]:
    """Return what does not fit, every shortfall with its arithmetic and advice; the first one's also by itself."""
    every = [
        {
            "process": each.process,
            "bytes": each.memory.total,
            "memory": layout.lines(each.memory),
            "advice": [*each.advice],
            "where": each.where,
        }
        for each in shortfalls
    ]
    first = {name: every[0][name] for name in ("process", "bytes", "memory", "advice")}
    reason = {"kind": "input", "where": error.where, "why": error.why}
    return {"exit": WRONG_INPUT, "fits": False, **first, "shortfalls": every, "error": reason}


def _shape(config: RunConfig, arguments: Namespace) -> shapes.ModelShape:
    if arguments.shape is None:
        return shapes.of_model(config.model.base, Path(arguments.config).absolute().parent)
    try:
        return shapes.named(arguments.shape)
    except BadInput as error:
        raise BadInput(error.why, "--shape" if error.where == "shape" else error.where) from error


def _with_engine(config: RunConfig, *, on_gpus: bool) -> RunConfig:
    """Return the configuration with the engine that a run would choose here, or on GPUs where vLLM is installed."""
    if config.engine.name != choice.AUTO:
        return config
    name = choice.PREFERRED if on_gpus else choice.choose()
    return config.model_copy(update={"engine": config.engine.model_copy(update={"name": name})})


def _toml(section: ClusterSection) -> str:
    """Return the lines of a configuration that state the numbers that were chosen."""
    address = [f'address = "{section.address}"'] if section.address else []
    return "\n".join(["[cluster]", f"learners = {section.learners}", f"engines = {section.engines}", *address])


def show(result: dict[str, Any]) -> str:
    """Return whether it fits, what would, and then the layout and the arithmetic as tables."""
    lines = [f"{'Fits' if result['fits'] else 'Does not fit'}: {_verdict(result)}."]
    for each in result.get("shortfalls", ()):
        lines += ["", *_advice(each)]
    lines += ["", *_heading(result)]
    if "processes" in result:
        lines += ["", *_processes(result["processes"])]
    for each in result.get("shortfalls", ()):
        lines += ["", *_table(each["process"], each["memory"])]
    memories = result["memory"] if result["fits"] else result.get("parts", {})
    for name, title in _titles(result).items():
        if rows := memories.get(name):
            lines += ["", *_table(title, rows)]
    lines += _notes(result["notes"])
    if spare := result.get("spare"):
        names = ", ".join(f"{each['gpu']} of node {each['node']}" for each in spare)
        lines += ["", f"Unused: GPU {names}"]
    return "\n".join([*lines, *(["", "For the configuration:", "", result["toml"]] if result.get("toml") else [])])


def _planned(result: Mapping[str, Any]) -> float:
    """Return the GiB of each GPU that a plan may use."""
    return float(result["memory_gib"] * (1 - MARGIN))


def _verdict(result: Mapping[str, Any]) -> str:
    """Return what each kind of process needs, beside what there is."""
    if not result["gpus"]:
        needed = _total(result["memory"]["machine"]) if result["fits"] else result["bytes"]
        return f"the run needs {needed / GIB:.1f} GiB; the machine has {result['memory_gib']:g} GiB"
    planned = f"{_planned(result):.1f} GiB of each GPU are usable"
    if not result["fits"]:
        names = " and ".join(f"{each['process']} needs {each['bytes'] / GIB:.1f} GiB" for each in result["shortfalls"])
        return f"{names}; {planned}"
    learner, engine = (result["memory"][name] for name in ("learner", "engine"))
    if result["shared"]:
        return f"the learner and an engine need {_total([*learner, *engine]) / GIB:.1f} GiB together; {planned}"
    needed = f"a learner rank needs {_total(learner) / GIB:.1f} GiB and an engine {_total(engine) / GIB:.1f} GiB"
    return f"{needed}; {planned}"


def _advice(shortfall: Mapping[str, Any]) -> list[str]:
    name = shortfall["process"]
    if not shortfall["advice"]:
        return [f"No setting that is tried here makes {name} fit."]
    return [f"{name[0].upper()}{name[1:]} would fit with:", *(f"- {each}" for each in shortfall["advice"])]


def _heading(result: Mapping[str, Any]) -> list[str]:
    """Return the model, and what it is planned for."""
    model = f"{result['model']}, {result['parameters']:,} parameters; engine {result['engine']}"
    gib = f"{result['memory_gib']:g} GiB"
    if not result["gpus"]:
        cores = f"with fewer than {result['cores']} cores the processes slow each other down"
        where = f"{model}; a machine with {gib} and without GPUs"
        return [where, "everything is in one process" if result["shared"] else cores]
    nodes = -(-result["gpus"] // result["gpus_per_node"])
    return [
        f"{model}; {_count(result['gpus'], 'GPU')} of {gib} on {_count(nodes, 'node')}",
        f"usable of each GPU: {_planned(result):.1f} GiB; {MARGIN:.0%} are reserved",
    ]


def _titles(result: Mapping[str, Any]) -> dict[str, str]:
    """Return what the tables of memory are called, in order."""
    if result["gpus"]:
        driver, store = "the driver, on its machine", "Ray's object store, on the first rank's node"
        return {
            "learner": "a learner rank",
            "engine": "an engine, on each of its GPUs",
            "driver": driver,
            "store": store,
        }
    parts = result["cluster"]["tensor_parallel"]
    return {
        "machine": "the machine",
        "learner": "a learner rank",
        "engine": f"each of the {parts} workers of an engine" if parts > 1 else "an engine",
        "scheduler": "an engine, beside its workers",
        "driver": "the driver",
        "store": "Ray's object store",
    }


def _processes(processes: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"{'process':14}{'node':>4}  {'GPU':8}{'GiB':>7}"]
    for process in processes:
        gpus = ", ".join(map(str, process["gpus"])) or "-"
        size = f"{process['bytes'] / GIB:.1f}" if process["bytes"] else "-"
        lines.append(f"{process['name']:14}{process['node']:>4}  {gpus:8}{size:>7}")
    return lines


def _notes(notes: Sequence[str]) -> list[str]:
    return ["", *(f"Note: {note}." for note in notes)] if notes else []


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _total(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the most bytes that a process needs at once."""
    return Memory(tuple(Line(**row) for row in rows)).total


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of one process's memory with its total; of lines that never coincide, the larger counts."""
    width = max(len(row["name"]) for row in rows) + 2
    table = [f"Memory of {title}:"]
    for row in rows:
        when = f"  [{WHEN[row['when']]}]" if row["when"] in WHEN else ""
        table.append(f"  {row['name']:{width}}{_size(row['bytes'])}{when}  {row['formula']}")
    table.append(f"  {'peak':{width}}{_size(_total(rows))}")
    phases = {words.partition(", ")[0] for when, words in WHEN.items() if when in {row["when"] for row in rows}}
    if len(phases) > 1:
        one = ", and of a, b and c only the largest" if "forward and backward" in phases else ""
        table.append(f"  What is in brackets is there in that phase alone: the peak has the largest phase{one}.")
    return table


def _size(count: int) -> str:
    """Return bytes in GiB, or small ones in MiB, in a column."""
    return f"{count / GIB:8.2f} GiB" if count >= GIB / 10 else f"{count / 2**20:8.2f} MiB"
