"""The lines of `docs/results/experiments.md`, computed from the raw numbers beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TITLES = {
    "return": "result of the seat",
    "agreement": "agreement",
    "mood": "mood before, 1 to 5",
    "trust": "trust after, 1 to 5",
}


def page(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield the counts and a row per measure: both arms, their difference, and the same recomputed."""
    first, second = (arm["name"] for arm in raw["analysis"]["arms"])
    groups = {arm["name"]: arm["groups"] for arm in raw["analysis"]["arms"]}
    outcomes = raw["outcomes"]
    yield f"| participants | {raw['participants']}, of them {raw['browsers']} with Chromium |"
    yield f"| completed | {outcomes['completed']} |"
    yield f"| left midway | {outcomes['left']} |"
    yield f"| started, `{first}` and `{second}` | {raw['started'][first]} and {raw['started'][second]} |"
    yield f"| analysed, `{first}` and `{second}` | {raw['analysed'][first]} and {raw['analysed'][second]} |"
    yield f"| groups, `{first}` and `{second}` | {groups[first]} and {groups[second]} |"
    yield f"| answers, moves and outcomes lost | {len(raw['lost'])} |"
    yield f"| largest gap of analysis and recomputation | {raw['largest_gap']:.0e} |"
    for name, title in TITLES.items():
        cells = [*(raw["analysis"]["measures"][name][arm] for arm in (first, second))]
        cells.append(raw["analysis"]["differences"][second][name])
        again = raw["recomputed"]["differences"][second][name]
        yield f"| {title} | {' | '.join(map(_cell, [*cells, again]))} |"


def _cell(cell: Mapping[str, float]) -> str:
    return f"{cell['mean']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}]"
