"""The tables of `docs/results/scale.md`: each part of `bench scale` that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from bench import gpu, step_model
from bench.scale import PARTS
from bench.site_conditions import idle
from bench.whole_steps import PHASES

Raw = Mapping[str, Any]
COMPARED = ("packing", "engines", "ranks", "overlap")
SHOWN = (*COMPARED, "sync", "model", "gpu")
"""Parts that have tables; of others the page has the lines that the measurement prints."""


def page(raw: Raw) -> Iterator[str]:
    """Yield the tables of the parts that were measured, and the conditions."""
    parts = raw["parts"]
    if compared := {name: parts[name] for name in COMPARED if name in parts}:
        yield from _compared(compared)
    for name, table in (("sync", _sync), ("model", _model), ("gpu", _gpu)):
        if name in parts:
            yield ""
            yield from table(parts[name])
    for name in parts:
        if name not in SHOWN:
            yield ""
            yield f"{name}: {import_module(PARTS[name]).line(parts[name])}"
    yield ""
    where = raw["conditions"]
    load = f"{where['load_before']:.2f}, {where['load_after']:.2f}{'' if idle(where) else ' (not idle)'}"
    yield f"Commit {where['commit']}, {where['cores']} cores, {where['processor']}; load before, after: {load}."


def _compared(parts: Raw) -> Iterator[str]:
    rows: dict[str, Raw] = {}
    for name, part in parts.items():
        if name == "packing":
            about = {"unit": part["unit"], "sides": part["sides"]}
            rows |= {f"{name}, {kind}": {**about, **part[kind]} for kind in ("traces", "branches")}
        else:
            rows[name] = part
    yield "| part | A | B | A | B | A / B | by round |"
    yield "|---|---|---|---|---|---|---|"
    for title, row in rows.items():
        low, high = min(row["ratios"]), max(row["ratios"])
        sides = " | ".join(row["sides"][side] for side in "ab")
        medians = " | ".join(f"{row[side]['median']:.0f}" for side in "ab")
        yield f"| {title}, {row['unit']} | {sides} | {medians} | **{row['ratio']:.2f}** | {low:.2f} to {high:.2f} |"
    if "overlap" in parts:
        reward = parts["overlap"]["reward_difference"]
        interval = f"{reward['mean']:+.3f} ± {reward['half_width']:.3f}".replace("-", "−")
        yield ""
        yield f"Reward at the end, lag 1 minus lag 0: {interval} over {reward['seeds']} seeds."


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
    for name, title in (("strong", "the same work"), ("weak", "as much work for each GPU")):
        yield ""
        yield from _scaling(part["gpus"][name], title)
    yield ""
    yield "| number | source |"
    yield "|---|---|"
    yield from (f"| {number} | {source} |" for number, source in part["sources"].items())


def _scaling(table: Raw, title: str) -> Iterator[str]:
    yield (
        f"| GPUs, {title} | ranks | engines | sampling | driver | learning | sync | step, lag 0 | lag 1 | "
        "conversations per hour | limit |"
    )
    yield "|" + "---|" * 11
    for row in table["rows"]:
        parts = " | ".join(f"{row['seconds'][name]:.0f} s" for name in ("engines", "driver", "learning", "sync"))
        steps = f"{row['lag_0_s']:.0f} s | {row['lag_1_s']:.0f} s"
        yield (
            f"| {row['gpus']} | {row['ranks']} | {row['engines']} | {parts} | {steps} | "
            f"{row['conversations_per_hour']:,.0f} | {row['limit']} |"
        )
    knee = table["knee"]
    yield ""
    if knee is None:
        yield f"With {title}, another GPU gives more than half of what the others give up to 512."
    else:
        row = next((row for row in table["rows"] if row["gpus"] >= knee), table["rows"][-1])
        yield f"With {title}, another GPU gives less than half from {knee} on; it would take {row['lift']}."


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
