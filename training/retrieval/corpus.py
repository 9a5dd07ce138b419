"""Corpus files: JSONL with one passage per line, `{"id": "…", "title": "…", "text": "…"}`.

`id` and `text` are required and not empty, ids are unique, `title` may be missing, and other fields are ignored. Every
problem raises `BadInput` with file, line and field; nothing is skipped silently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from training.errors import BadInput
from training.reading import check_json
from training.retrieval.base import Progress, no_progress
from training.store import check_file, from_json, numbered_lines

FIELDS = ("id", "title", "text")
LONGEST = 4 * 2**20
"""Bytes of a line at most: a line is read into memory as a whole."""
_BLOCK = 2**20


class InvalidCorpus(BadInput):
    """A corpus whose content cannot be indexed, whoever tries it; `where` names file, line and field."""


class Document(NamedTuple):
    """A passage of a corpus."""

    id: str
    title: str
    text: str

    @property
    def content(self) -> str:
        """What is searched: the title and the text."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class Checksum(NamedTuple):
    """The SHA-256 of a file's bytes, and its number of line breaks."""

    sha256: str
    lines: int


def checksum(path: Path, on_progress: Progress = no_progress) -> Checksum:
    """Return the checksum of a corpus file; raise `BadInput` unless it is a regular file. Progress is in bytes."""
    check_file(path)
    digest, lines, done, total = hashlib.sha256(), 0, 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            lines += block.count(b"\n")
            done += len(block)
            on_progress(done, total, "checksum")
    return Checksum(digest.hexdigest(), lines)


def read(path: Path) -> Iterator[Document]:
    """Yield the passages of a corpus file; raise `InvalidCorpus` at the first invalid line or repeated id.

    Only the ids are kept in memory.
    """
    check_file(path)
    ids: set[str] = set()
    try:
        for number, line in numbered_lines(path, LONGEST):
            where = f"{path.name} line {number}"
            document = parse(line, where)
            if document.id in ids:
                why = f"a second passage with the id {document.id[:80]!r}: ids are unique"
                raise BadInput(why, f"{where}, id")
            ids.add(document.id)
            yield document
    except BadInput as error:
        raise InvalidCorpus(error.why, error.where) from error


def parse(line: str | bytes, where: str) -> Document:
    """Return the passage of one line; raise `BadInput` naming `where` and the field."""
    data = from_json(line, where)
    if not isinstance(data, dict):
        raise BadInput("expected an object with id, title and text", where)
    fields = {name: _text(data, name, where) for name in FIELDS}
    try:
        check_json(fields)
    except BadInput as error:
        raise BadInput(error.why, f"{where}, {error.where}") from error
    return Document(**fields)


def _text(data: Mapping[str, Any], name: str, where: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise BadInput("expected a string", f"{where}, {name}")
    if "\x00" in value:
        raise BadInput("the text contains a NUL character, which databases cannot store", f"{where}, {name}")
    if name != "title" and not value.strip():
        problem = "is empty" if name in data else "is missing"
        raise BadInput(f"the field {problem}: every passage needs an id and a text", f"{where}, {name}")
    return value
