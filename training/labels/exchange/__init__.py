"""Labels in the formats of other tools: pure functions over records, without the site.

A format writes scenarios with their judgments (`LabelledScenario`), whose authors are the annotators.
A new one is a module with its entry in `FORMATS`, and its name among those of `webapp.api.judgments.export_labels`; one
that reads external files is an importer of the site, too (`webapp.scenarios.importers`). `label_studio_reading` and
`doccano` read the tasks of external files, of which `external.judgments` makes judgments.
"""

from __future__ import annotations

from training.errors import BadInput
from training.labels.exchange import jsonl, label_studio, label_studio_reading, table, w3c
from training.labels.exchange.base import Format, LabelledScenario

__all__ = ["FORMATS", "Format", "LabelledScenario", "format_named"]

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format(
            "jsonl", "Parley: JSONL of scenarios", "jsonl", "application/jsonl; charset=utf-8", jsonl.write, jsonl.read,
        ),
        Format("csv", "Table: CSV, a row per label", "csv", "text/csv; charset=utf-8", table.write),
        Format(
            "label-studio", "Label Studio: JSON", "json", "application/json", label_studio.write,
            label_studio_reading.read_exported,
        ),
        Format("w3c", "W3C Web Annotations: JSON-LD", "jsonld", "application/ld+json", w3c.write),
    )
}  # fmt: skip
"""The formats in which labels are exported, by name."""


def format_named(name: str) -> Format:
    """Return a format; raise `BadInput` for an unknown name."""
    if name not in FORMATS:
        raise BadInput(f"unknown format {name[:80]!r}; known: {', '.join(FORMATS)}", "format")
    return FORMATS[name]
