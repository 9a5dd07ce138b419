"""Where things come from: the line of checkpoints behind one, and a configuration's fields with their meanings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection

from training import bases
from training.errors import BadInput
from webapp.runs import presets
from webapp.runs.models import Checkpoint


@dataclass(frozen=True)
class Node:
    """One line of the tree: a checkpoint at its depth; `here` marks the one whose page it is."""

    checkpoint: Checkpoint
    depth: int
    here: bool


_UP = """
WITH RECURSIVE line(id, parent_id, depth) AS (
    SELECT id, parent_id, 0 FROM runs_checkpoint WHERE id = %s
    UNION ALL SELECT c.id, c.parent_id, depth - 1 FROM runs_checkpoint c JOIN line ON c.id = line.parent_id
    WHERE depth > -200
) SELECT id, depth FROM line
"""
_DOWN = """
WITH RECURSIVE below(id, depth) AS (
    SELECT id, 1 FROM runs_checkpoint WHERE parent_id = %s
    UNION ALL SELECT c.id, depth + 1 FROM runs_checkpoint c JOIN below ON c.parent_id = below.id
    WHERE depth < 200
) SELECT id, depth FROM below ORDER BY depth, id LIMIT 80
"""


def tree(checkpoint: Checkpoint) -> list[Node]:
    """The ancestors, the checkpoint and what came of it. A line goes in one step deeper where another run begins."""
    with connection.cursor() as cursor:
        cursor.execute(_UP, [checkpoint.pk])
        generations: dict[int, int] = dict(cursor.fetchall())
        cursor.execute(_DOWN, [checkpoint.pk])
        generations |= dict(cursor.fetchall())
    found = Checkpoint.objects.listed().in_bulk(list(generations))
    depths: dict[int, int] = {}
    nodes = []
    for pk, _ in sorted(generations.items(), key=lambda pair: (pair[1], pair[0])):
        one = found[pk]
        parent = found.get(one.parent_id) if one.parent_id else None
        deeper = parent is not None and parent.run_id != one.run_id
        depths[pk] = depths.get(one.parent_id or 0, 0) + deeper
        nodes.append(Node(one, depths[pk], pk == checkpoint.pk))
    return nodes


def note(base: str) -> str:
    """What is said of a base model wherever it, or what came of it, is shown: "dequantised from 4 bits", say.

    The register knows it; a model that somebody added says it itself. Empty where there is nothing to say.
    """
    entry = bases.find(base)
    if entry is not None:
        return entry.said
    added = Checkpoint.objects.filter(kind=Checkpoint.Kind.BASE, name=base).first()
    try:
        return bases.read_info(Path(added.path)).note if added is not None else ""
    except (BadInput, OSError):
        return ""


def meaning(part: Mapping[str, Any]) -> str:
    """What a part of the schema is for: its own words, else the first line of what it stands for."""
    return str(part.get("description") or _definition(part, presets.schema()).get("description", "")).split("\n")[0]


def described(config: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, Any, str]]]]:
    """A configuration as sections of (field, value, meaning)."""
    schema = presets.schema()
    sections = []
    for name, value in config.items():
        part = schema["properties"].get(name, {})
        rows = list(_rows(value, part, schema, ""))
        sections.append((name, rows))
    return sections


def _rows(value: Any, part: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any, str]]:
    found = _definition(part, schema)
    if isinstance(value, dict) and value and "properties" in found:
        for name, inner in value.items():
            below = found["properties"].get(name, {})
            yield from _rows(inner, below, schema, f"{path}.{name}" if path else name)
    else:
        yield path, value, part.get("description", "")


def _definition(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object that a part of the schema stands for."""
    options = [part, *part.get("anyOf", []), *part.get("oneOf", []), *part.get("allOf", [])]
    for option in options:
        if "$ref" in option:
            found: Mapping[str, Any] = schema["$defs"][option["$ref"].rsplit("/", 1)[-1]]
            return found
    return part
