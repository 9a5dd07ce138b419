"""Reads doccano's JSONL: sequence labelling, with relations or without, text classification, and sequence to sequence.

A line is a text with `label` or `labels`, which are spans [start, end, name], names, or texts; with `entities` and
`relations`; or with `annotations` of earlier releases, which name their `user` by number. Offsets are code points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from training.errors import BadInput
from training.labels.codebooks import Codebook, LabelType
from training.labels.exchange.base import Answer, Mark, Task, find_type, need, option_named, type_named
from training.labels.exchange.external import Document, Split, marked, number_of, placed
from training.records import Judgment, LabelValue
from training.store import from_json, numbered_lines

AUTHOR = "doccano"
LISTS = ("label", "labels", "cats", "entities", "annotations")
"""The keys that may hold labels."""


def read(path: Path, codebook: Codebook, *, split: Split = "text") -> Iterator[Task]:
    """Yield the texts of a file with their labels under a codebook; a line without labels has no answer."""
    for number, text in numbered_lines(path):
        where = f"{path.name} line {number}"
        yield _task(from_json(text, where), codebook, where, number, split)


def _task(line: Any, codebook: Codebook, where: str, number: int, split: Split) -> Task:
    text = need(line, "text" if isinstance(line, Mapping) and "text" in line else "data", str, where)
    document = Document([("", text)], split, where)
    by_author: dict[str, list[Mark]] = {}
    turns: dict[Any, int] = {}
    for key in LISTS:
        for place, entry in enumerate(_entries(line, key, where)):
            at = f"{where}, {key}.{place}"
            author, mark = _author(entry, at), _mark(entry, codebook, document, at)
            by_author.setdefault(author, []).append(mark)
            if isinstance(entry, Mapping) and "id" in entry and mark.turn is not None:
                turns[entry["id"]] = mark.turn
    for place, entry in enumerate(_entries(line, "relations", where)):
        at = f"{where}, relations.{place}"
        by_author.setdefault(_author(entry, at), []).append(_relation(entry, codebook, turns, at))
    answers = tuple(
        Answer(
            Judgment(codebook=codebook.name, codebook_version=codebook.version, episode="", author=author),
            tuple(marks),
        )
        for author, marks in by_author.items()
    )
    return Task(str(line.get("id", number))[:60], where, document.texts, answers)


def _entries(line: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = line.get(key)
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise BadInput(f"expected a list, not {type(value).__name__}", f"{where}, {key}")
    return value


def _author(entry: Any, where: str) -> str:
    number = number_of(entry.get("user"), f"{where}.user") if isinstance(entry, Mapping) else None
    return AUTHOR if number is None else f"{AUTHOR}:{number}"


def _mark(entry: Any, codebook: Codebook, document: Document, where: str) -> Mark:
    if isinstance(entry, str):
        label_type, value = _named(entry, codebook, where)
        return placed(document, label_type, value, where, None)
    if isinstance(entry, Mapping):
        name = need(entry, "label", str, where)
        if "start_offset" not in entry:
            label_type, value = _named(name, codebook, f"{where}.label")
            return placed(document, label_type, value, where, None)
        start, end = need(entry, "start_offset", int, where), need(entry, "end_offset", int, where)
    elif isinstance(entry, list) and len(entry) == 3:
        start, end, name = entry
        if not (type(start) is int and type(end) is int and isinstance(name, str)):
            raise BadInput("expected start, end and the name of a label", where)
    else:
        raise BadInput("expected [start, end, name], an object, or a name", where)
    label_type = type_named(codebook, name, where)
    turn, begin, stop = document.in_text(start, end, where)
    region = turn, begin, stop, document.in_turn(turn, where).is_whole(begin, stop)
    return placed(document, label_type, marked(label_type, where), where, region)


def _named(name: str, codebook: Codebook, where: str) -> tuple[LabelType, LabelValue]:
    """Return the label that a name stands for: a label type, an option of the only choice, or a text for the only one.

    Texts are the answers of a sequence-to-sequence project.
    """
    if (label_type := find_type(codebook, name)) is not None:
        return label_type, marked(label_type, where)
    choices = [each for each in codebook.labels if each.kind == "one_of"]
    if len(choices) == 1:
        return choices[0], option_named(choices[0], name, where)
    texts = [each for each in codebook.labels if each.kind == "text"]
    if len(texts) == 1:
        return texts[0], name
    return type_named(codebook, name, where), None


def _relation(entry: Any, codebook: Codebook, turns: Mapping[Any, int], where: str) -> Mark:
    label_type = type_named(codebook, need(entry, "type", str, where), f"{where}.type")
    if label_type.kind != "relation":
        raise BadInput(f"{label_type.name} is no relation", f"{where}.type")
    ends = []
    for key in ("from_id", "to_id"):
        name = need(entry, key, int, where)
        if name not in turns:
            raise BadInput(f"there is no entity {name}", f"{where}.{key}")
        ends.append(turns[name])
    if ends[0] == ends[1]:
        why = "a relation leads to another turn, and both ends are in one; make a turn of each line: split lines"
        raise BadInput(why, where)
    return Mark(label_type, None, where, turn=ends[0], other_turn=ends[1])
