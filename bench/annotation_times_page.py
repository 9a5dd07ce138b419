"""The tables of `docs/results/annotation-times.md`: response times, analyses and exports of a large queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.site_conditions import idle

Raw = Mapping[str, Any]


def page(raw: Raw) -> Iterator[str]:
    """Yield the tables of requests, the slowest first, of analyses and of exports, and the conditions."""
    limit = raw["limit_ms"]
    yield f"| request | median | p95 | processor, median | p95 | median ≤ {limit:.0f} ms | of the processor |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in sorted(raw["pages"].items(), key=lambda pair: -pair[1]["processor_ms"]):
        times = " | ".join(f"{row[key]:.1f} ms" for key in ("median_ms", "p95_ms", "processor_ms", "processor_p95_ms"))
        met = " | ".join(_met(row[key] <= limit) for key in ("median_ms", "processor_ms"))
        yield f"| {name} | {times} | {met} |"
    yield ""
    yield "| analysis by a worker | seconds | of the processor |"
    yield "|---|---|---|"
    for name, row in raw["analyses"].items():
        yield f"| {name} | {row['seconds']:.1f} | {row['processor_s']:.1f} |"
    yield ""
    yield "| export | seconds | of the processor | file | peak memory |"
    yield "|---|---|---|---|---|"
    for name, row in raw["exports"].items():
        cells = (
            f"{row['seconds']:.1f} | {row['processor_s']:.1f} | {row['megabytes']:.1f} MB | {row['peak_mib']:.0f} MiB"
        )
        yield f"| `{name}` | {cells} |"
    yield ""
    where = raw["conditions"]
    load = f"{where['load_before']:.2f}, {where['load_after']:.2f}{'' if idle(where) else ' (not idle)'}"
    yield f"Commit {where['commit']}, {where['cores']} cores, {where['processor']}; load before, after: {load}."


def _met(condition: bool) -> str:
    return "yes" if condition else "**no**"
