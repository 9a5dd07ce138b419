"""The tables of `docs/results/scale.md`: each part of `bench scale` that was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench import gpu, gpu_costs, step_model, step_tables
from bench.site_conditions import idle
from bench.step_tables import Scaling
from bench.whole_steps import PHASES

Raw = Mapping[str, Any]
COMPARED = ("packing", "engines", "ranks", "overlap", "checkpoints", "transfer")
"""Parts that are rows of the first table."""
WITHIN = {"packing": ("traces", "branches"), "checkpoints": ("save", "load")}
"""Those that have several comparisons."""


def page(raw: Raw) -> Iterator[str]:
    """Yield the tables of the parts that were measured, and the conditions."""
    parts = raw["parts"]
    if compared := {name: parts[name] for name in COMPARED if name in parts}:
        yield from _compared(compared)
    for name, table in TABLES.items():
        if name in parts:
            yield ""
            yield from table(parts[name])
    yield ""
    yield "| part | commit | began | cores | processor | load before | after |"
    yield "|---|---|---|---|---|---|---|"
    yield from (f"| {name} | {_measured(part['measured'])} |" for name, part in parts.items())


def _measured(where: Raw) -> str:
    """Return the conditions of a part as cells."""
    load = f"{where['load_before']:.2f}{'' if idle(where) else ' (not idle)'}"
    cells = [where["commit"], where["began"], str(where["cores"]), where["processor"], load]
    return " | ".join([*cells, f"{where['load_after']:.2f}"])


def _compared(parts: Raw) -> Iterator[str]:
    rows: dict[str, Raw] = {}
    for name, part in parts.items():
        if name in WITHIN:
            about = {"unit": part["unit"], "sides": part["sides"]}
            rows |= {f"{name}, {kind}": {**about, **part[kind]} for kind in WITHIN[name]}
        else:
            rows[name] = part
        if name == "ranks":
            rows["independent learners"] = part["independent"]
    yield "| comparison | A | B | rate of A | rate of B | A / B | by round |"
    yield "|---|---|---|---|---|---|---|"
    for title, row in rows.items():
        ratios = _ratios(row)
        low, high = min(ratios), max(ratios)
        sides = " | ".join(row["sides"][side] for side in "ab")
        medians = " | ".join(f"{row[side]['median']:.0f}" for side in "ab")
        yield f"| {title}, {row['unit']} | {sides} | {medians} | **{row['ratio']:.2f}** | {low:.2f} to {high:.2f} |"
    if "overlap" in parts:
        reward = parts["overlap"]["reward_difference"]
        interval = f"{reward['mean']:+.3f} ± {reward['half_width']:.3f}".replace("-", "−")
        yield ""
        yield f"Reward at the end, lag 1 minus lag 0: {interval} over {reward['seeds']} seeds."


def _ratios(row: Raw) -> list[float]:
    """Return the ratios of all rounds; what the file has of them is rounded, and would be rounded twice."""
    a, b = (row[side].get("rates", ()) for side in "ab")
    return [ours / theirs for ours, theirs in zip(a, b, strict=True)] or row["ratios"]


def _packing(part: Raw) -> Iterator[str]:
    yield "| packing | traces | tokens | shortest, median, longest | padding in B | micro-batches of A | of B |"
    yield "|---|---|---|---|---|---|---|"
    for kind in WITHIN["packing"]:
        work = part[kind]["work"]
        lengths = ", ".join(map(str, work["lengths"]))
        counts = f"{work['traces']} | {work['tokens']:,} | {lengths} | {100 * work['padding']:.1f} %"
        yield f"| {kind} | {counts} | {work['passes']['a']} | {work['passes']['b']} |"


def _sync(part: Raw) -> Iterator[str]:
    yield f"| phase, seconds of a step | {part['sides']['a']} | spread | share | {part['sides']['b']} |"
    yield "|---|---|---|---|---|"
    for name in PHASES:
        ours, theirs = (part[side]["seconds"][name] for side in "ab")
        low, high = ours["spread"]
        share = 100 * part["a"]["shares"][name]
        yield f"| {name} | {ours['median']:.2f} | {low:.2f} to {high:.2f} | {share:.1f} % | {theirs['median']:.2f} |"
    yield ""
    yield (
        f"The sync of {part['bytes'] / 1e6:.0f} MB takes {100 * part['share']:.1f} % of a step, at most "
        f"{100 * part['target']:.0f} %: {'yes' if part['ok'] else '**no**'}; {part['bytes_per_s'] / 1e6:.0f} MB/s."
    )


def _model(part: Raw) -> Iterator[str]:
    yield "| steps that were not used for the fit | model | measured | error |"
    yield "|---|---|---|---|"
    for check in part["checks"]:
        title = step_model.title(check)
        if "skipped" in check:
            yield f"| {title} | | not measured: {check['skipped']} | |"
        else:
            times = f"{check['modelled_s']:.2f} s | {check['measured_s']:.2f} s"
            yield f"| {title} | {times} | {100 * check['error']:+.0f} % |"
    driver = part["driver"]
    yield ""
    yield (
        f"The driver takes {1000 * driver['turn_s']:.2f} ms for a turn and {1000 * driver['request_s']:.2f} ms for its "
        f"request to an engine's process, and {1000 * driver['credit_s']:.1f} ms for the credit and the record of a "
        f"conversation of {driver['work']['trace_tokens']:.0f} tokens."
    )
    costs = step_tables.costs(driver)
    yield ""
    yield step_tables.facts(costs)
    yield ""
    yield from _scaling(step_tables.strong(costs), "strong scaling")
    yield ""
    yield from _scaling(step_tables.weak(costs), "weak scaling")
    yield ""
    faster = step_tables.costs(driver, gpu_costs.TRAINED_FASTER)
    title = f"strong scaling, training at {gpu_costs.TRAINED_FASTER:,.0f} tokens per second and GPU"
    yield from _scaling(step_tables.strong(faster), title)
    yield ""
    yield "| number | source |"
    yield "|---|---|"
    yield from (f"| {number} | {source} |" for number, source in gpu_costs.SOURCES.items())


def _scaling(table: Scaling, title: str) -> Iterator[str]:
    yield (
        f"| GPUs, {title} | ranks | engines | sampling | driver | learning | sync | credit | step, lag 0 | lag 1 | "
        "conversations per hour, lag 1 | bottleneck | without it |"
    )
    yield "|" + "---|" * 13
    for row in table.rows:
        of = row.parts
        parts = " | ".join(f"{part:.0f} s" for part in (of.engines, of.driver, of.learning, of.sync, of.credit))
        steps = f"{row.lag_0_s:.0f} s | {row.lag_1_s:.0f} s"
        counts = f"{row.gpus} | {row.layout.ranks} | {row.layout.engines}"
        yield f"| {counts} | {parts} | {steps} | {row.rate:,.0f} | {row.limit} | {row.unlimited_rate:,.0f} |"
    yield ""
    if table.knee is None:
        yield f"In {title}, doubling the GPUs adds at least half of the throughput, up to 512."
        return
    yield (
        f"In {title}, doubling the GPUs from {table.knee} on adds less than half, and from {table.enough} on the rate "
        "is within 1 % of its highest."
    )


def _memory(part: Raw) -> Iterator[str]:
    yield "| process | loaded | against the plan | peak | against the plan |"
    yield "|---|---|---|---|---|"
    for row in part["rows"]:
        sizes = (f"{row[at] / 1e6:,.0f} MB | {round(100 * (row[f'{at}_ratio'] - 1)):+d} %" for at in ("loaded", "peak"))
        yield f"| {row['process']} | {' | '.join(sizes)} |"


def _gpu(part: Raw) -> Iterator[str]:
    yield "| shape | part | result |"
    yield "|---|---|---|"
    published = {(row["shape"], row["part"]): row for row in part["published"]}
    for shape, parts in part["shapes"].items():
        for name, row in parts.items():
            yield f"| {shape} | {name} | {gpu.words(row, published.get((shape, name)))} |"
    devices = sorted({row["device"] for parts in part["shapes"].values() for row in parts.values() if "device" in row})
    yield ""
    yield f"Measured on: {', '.join(devices) or 'nothing'}. Published: {part['source']}."


TABLES: dict[str, Callable[[Raw], Iterator[str]]] = {
    "packing": _packing,
    "sync": _sync,
    "model": _model,
    "memory": _memory,
    "gpu": _gpu,
}
"""Parts with tables of their own."""
