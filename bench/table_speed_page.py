"""The computed part of `docs/results/table-speed.md`: limits and whether they were met, stages, games, conditions.

Quantiles are computed here from the raw values. `python -m bench results --write` writes these lines to the page.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.site_conditions import idle

Raw = Mapping[str, Any]
WORST = {
    "shift": ("layout shift", "< {:.2f}", "{:.3f}"),
    "input_ms": ("interaction to next paint", "≤ {:.0f} ms", "{:.0f} ms"),
    "sent_kb": ("page, compressed, without images", "≤ {:.0f} KB", "{:.1f} KB"),
    "sideways_px": ("horizontal scroll", "{:.0f} px", "{:.0f} px"),
}
STAGES = {
    "session": "the session check",
    "move": "the move: parse, check, store, notify",
    "read": "the other player's read, with what it renders",
    "frame": "the other player's frame",
}


def page(raw: Raw) -> Iterator[str]:
    """Yield the page's lines: four tables with their headings."""
    yield from limits(raw)
    yield from ("", "## The time of a move by stage", "")
    yield from stages(raw["move"])
    yield from ("", "## The page of each game's table", "")
    yield from games(raw["table_page"]["tables"])
    yield from ("", "## Conditions", "")
    yield from conditions(raw)


def quantile(values: Sequence[float], percent: int) -> float:
    """Return a quantile of at least two values, with linear interpolation between order statistics."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def limits(raw: Raw) -> Iterator[str]:
    """Yield a row for each limit."""
    yield "| what | command | limit | measured | met |"
    yield "|---|---|---|---|---|"
    for name, percent in (("p50_ms", 50), ("p95_ms", 95)):
        runs = [quantile(run, percent) for run in raw["socket"]["series_ms"]]
        shown = f"{statistics.median(runs):.1f} ms ({min(runs):.1f}–{max(runs):.1f})"
        limit = raw["socket"]["limits_ms"][name]
        what = f"from a move to the other player's socket, p{percent} (range over {len(runs)} runs)"
        yield _row(what, "socket", f"≤ {limit:.0f} ms", shown, statistics.median(runs) <= limit)
    table = raw["table"]
    worst = quantile(table["series_ms"], 95)
    what = f"from an event to its viewers' sockets, {table['tables']} tables, {table['sockets']} sockets, p95"
    yield _row(what, "table", f"≤ {table['limit_ms']:.0f} ms", f"{worst:.1f} ms", worst <= table["limit_ms"])
    rows, allowed = raw["table_page"]["tables"], raw["table_page"]["limits"]
    for name, (what, limit, shown) in WORST.items():
        worst = max(row[name] for row in rows)
        met = worst < allowed[name] if name == "shift" else worst <= allowed[name]
        text = f"{what}, worst of {len(rows)} tables in a browser"
        yield _row(text, "table-page", limit.format(allowed[name]), shown.format(worst), met)


def _row(what: str, command: str, limit: str, shown: str, met: bool) -> str:
    return f"| {what} | `{command}` | {limit} | {shown} | {'yes' if met else '**no**'} |"


def stages(raw: Raw) -> Iterator[str]:
    """Yield a row for each stage of a move, and one for the total."""
    yield "| stage | p50 | p95 | SQL statements |"
    yield "|---|---|---|---|"
    series = {name: raw["stages"][name]["series"] for name in STAGES}
    for name, text in STAGES.items():
        each = series[name]
        cells = " | ".join(f"{quantile(each['total_ms'], percent):.1f} ms" for percent in (50, 95))
        yield f"| {text} | {cells} | {statistics.median(each['statements']):.0f} |"
    sums = [sum(values) for values in zip(*(each["total_ms"] for each in series.values()), strict=True)]
    yield f"| total, without sockets | {quantile(sums, 50):.1f} ms | {quantile(sums, 95):.1f} ms | |"


def games(rows: Sequence[Raw]) -> Iterator[str]:
    """Yield a row for each game with the worst of its tables in both windows."""
    yield "| game | tables | layout shift | interaction to next paint | compressed | horizontal scroll |"
    yield "|---|---|---|---|---|---|"
    for game in sorted({row["game"] for row in rows}):
        tables = [row for row in rows if row["game"] == game]
        cells = " | ".join(shown.format(max(row[name] for row in tables)) for name, (_, _, shown) in WORST.items())
        yield f"| `{game}` | {len(tables)} | {cells} |"


def conditions(raw: Raw) -> Iterator[str]:
    """Yield a row for each command: commit, seeds, processor, and the load average before and after it."""
    yield "| command | commit | seeds | began (UTC) | processor | load before, after |"
    yield "|---|---|---|---|---|---|"
    seeds = {"socket": "none", "move": "none", "table": raw["table"]["seeds"], "table_page": raw["table_page"]["seed"]}
    for name, seed in seeds.items():
        where = raw[name]["conditions"]
        machine = f"{where['cores']} cores, {where['processor']}, {where['memory_gib']} GiB"
        load = f"{where['load_before']:.2f}, {where['load_after']:.2f}{'' if idle(where) else ' (not idle)'}"
        yield f"| `{where['command']}` | {where['commit']} | {seed} | {where['began'][:16]} | {machine} | {load} |"
