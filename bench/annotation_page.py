"""The lines of `docs/results/annotation.md` about labels from recorded games to another site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Raw = Mapping[str, Any]


def page(raw: Raw) -> Iterator[str]:
    """Yield the tables of imports, of work, of agreement and of formats."""
    yield from _imports(raw["imports"])
    yield ""
    yield from _work(raw)
    yield ""
    yield from _agreement(raw["agreement"])
    yield ""
    yield from _formats(raw)


def _imports(raw: Raw) -> Iterator[str]:
    yield "| recorded games | conversations stored | judgments that came with them | seconds |"
    yield "|---|---|---|---|"
    for name, row in raw.items():
        yield f"| {name} | {row['conversations']:,} | {row['judgments']:,} | {row['seconds']:.1f} |"


def _work(raw: Raw) -> Iterator[str]:
    counts, seconds = raw["counts"], raw["seconds"]
    yield "| what | count | median seconds of each |"
    yield "|---|---|---|"
    yield f"| seats of {raw['games']} games | {counts['targets']} | |"
    yield f"| judgments through the pages | {raw['by']['pages']} | {seconds['pages']:.2f} |"
    yield f"| judgments through the API | {raw['by']['api']} | {seconds['api']:.2f} |"
    yield f"| of them: could not be scored, unsure | {counts['unscored']}, {counts['unsure']} | |"
    decisions = f"{counts['decisions']} of {raw['disagreements']}"
    yield f"| decisions on disagreements | {decisions} | {seconds['decision']:.2f} (mean) |"
    yield f"| labels, decisions' included | {counts['labels']} | |"


def _agreement(raw: Raw) -> Iterator[str]:
    yield "| label type | α of the API | interval | α of the page | α recomputed | seats, games |"
    yield "|---|---|---|---|---|---|"
    for name, row in raw["labels"].items():
        interval = "–" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}"
        values = " | ".join((_alpha(row["value"]), interval, row["page"] or "–", _alpha(row["recomputed"])))
        yield f"| `{name}` | {values} | {row['units']}, {row['games']} |"
    yield ""
    yield f"Largest difference of α and its recomputation: {raw['largest_gap']:.0e}."


def _alpha(value: float | None) -> str:
    return "–" if value is None else f"{value:.6f}"


def _formats(raw: Raw) -> Iterator[str]:
    yield "| format | read by | judgments | labels | differences | same bytes twice | seconds |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in raw["formats"].items():
        reader = "another installation" if row["imported"] else "the bench"
        same = "yes" if row["same_bytes"] else "**no**"
        cells = f"{row['judgments']} | {row['labels']} | {len(row['differences'])} | {same}"
        yield f"| `{name}` | {reader} | {cells} | {raw['seconds']['export'][name]:.2f} |"
