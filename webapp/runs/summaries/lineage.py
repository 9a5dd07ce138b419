"""Lineage of checkpoints, and a configuration's fields with their meanings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection

from training import bases
from training.errors import BadInput
from webapp.core.schema import resolved
from webapp.runs import presets
from webapp.runs.models import Checkpoint


@dataclass(frozen=True)
class Node:
    """One line of the tree: a checkpoint at its depth; `here` marks the checkpoint of the page."""

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
    """The checkpoint with its ancestors and descendants. The depth increases where another run begins."""
    with connection.cursor() as cursor:
        cursor.execute(_UP, [checkpoint.pk])
        generations: dict[int, int] = dict(cursor.fetchall())
        cursor.execute(_DOWN, [checkpoint.pk])
        generations |= dict(cursor.fetchall())
    checkpoints = Checkpoint.objects.listed().in_bulk(list(generations))
    depths: dict[int, int] = {}
    nodes = []
    for pk, _ in sorted(generations.items(), key=lambda pair: (pair[1], pair[0])):
        node = checkpoints[pk]
        parent = checkpoints.get(node.parent_id) if node.parent_id else None
        deeper = parent is not None and parent.run_id != node.run_id
        depths[pk] = depths.get(node.parent_id or 0, 0) + deeper
        nodes.append(Node(node, depths[pk], pk == checkpoint.pk))
    return nodes


def note(base: str) -> str:
    """The note on a base model, shown with it and its descendants, such as "dequantised from 4 bits".

    It comes from the registry, or from the folder of a model added by an admin. Empty if there is none.
    """
    entry = bases.find(base)
    if entry is not None:
        return entry.result_note
    checkpoint = Checkpoint.objects.filter(kind=Checkpoint.Kind.BASE, name=base).first()
    try:
        return bases.read_info(Path(checkpoint.path)).note if checkpoint is not None else ""
    except (BadInput, OSError):
        return ""


def meaning(part: Mapping[str, Any]) -> str:
    """The description of a part of the schema, else the first line of its definition's description."""
    return str(part.get("description") or resolved(part, presets.schema(), None).get("description", "")).split("\n")[0]


def described(config: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, Any, str]]]]:
    """A configuration as sections of (field, value, meaning), in the order of the schema."""
    schema = presets.schema()
    sections = []
    for name, value in _in_order(config, schema["properties"]):
        part = schema["properties"].get(name, {})
        rows = list(_rows(value, part, schema, ""))
        sections.append((name, rows))
    return sections


def _in_order(values: Mapping[str, Any], properties: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Fields in the order of the schema, unknown ones last: the database returns keys sorted by their length."""
    names = list(dict.fromkeys([*properties, *values]))
    return [(name, values[name]) for name in names if name in values]


def _rows(value: Any, part: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any, str]]:
    definition = resolved(part, schema, value)
    if isinstance(value, dict) and value and "properties" in definition:
        for name, inner in _in_order(value, definition["properties"]):
            below = definition["properties"].get(name, {})
            yield from _rows(inner, below, schema, f"{path}.{name}" if path else name)
    else:
        yield path, value, part.get("description", "")
