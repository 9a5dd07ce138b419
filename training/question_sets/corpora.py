"""Passages that come with question sets, as corpus files: JSONL, `{"id", "title", "text"}`.

`write` leaves out passages without a word and repeated ones, and says how many. All problems raise `BadInput`, and
nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from training.errors import BadInput
from training.games.actions import clean
from training.question_sets import popqa, pubmedqa
from training.question_sets.base import text, text_of, texts
from training.retrieval.corpus import Document
from training.retrieval.words import words as words_of
from training.store import atomic_file, dumps

CORRECT, INCORRECT, SOURCES = "ref_correct", "ref_incorrect", "sources"
_NEXT = re.compile(r"\s*;\s+(?=[^a-z\s;:][^;:]{0,99}: )")
"""The end of an extract before the title of the next one, in `ref_incorrect`."""


class Written(NamedTuple):
    """How many passages were written, and how many left out: repeated ones, and ones without a word."""

    passages: int
    repeated: int
    empty: int


def write(documents: Iterable[Document], path: Path) -> Written:
    """Write passages to a new file; raise `BadInput` if it exists. After any error there is no file."""
    if path.exists():
        raise BadInput("the file exists already; choose another name", str(path))
    seen: set[tuple[str, str]] = set()
    repeated = empty = 0
    with atomic_file(path) as file:
        for document in documents:
            if not words_of(document.text):
                empty += 1
            elif (document.title, document.text) in seen:
                repeated += 1
            else:
                seen.add((document.title, document.text))
                file.write(dumps(document._asdict()) + "\n")
        if not seen:
            raise BadInput("there is no passage", str(path))
    return Written(len(seen), repeated, empty)


def popqa_passages(folder: Path, table: Path, longest: int) -> Iterator[Document]:
    """Yield the passages retrieved for PopQA's questions, in parts of at most `longest` words.

    The folder has three files with a line for each row of PopQA's `table`: `sources` with the question,
    `ref_correct` and `ref_incorrect` with text. An extract in `ref_incorrect` begins with the title of its page; the
    pages of `ref_correct` are not named.
    """
    rows = list(popqa.entries(table))
    files = {name: _lines(folder / name) for name in (SOURCES, CORRECT, INCORRECT)}
    for name, lines in files.items():
        if len(lines) != len(rows):
            raise BadInput(f"{len(lines)} lines, but {table.name} has {len(rows)} questions", name)
    for row, *lines in zip(rows, files[CORRECT], files[INCORRECT], strict=True):
        correct, incorrect = (clean(line.removeprefix("#")) for line in lines)
        key = f"popqa-{text(row, 'id')}"
        yield from _parts(f"{key}-correct", "", correct, longest)
        for number, extract in enumerate(_NEXT.split(incorrect), 1):
            title, separator, words = extract.partition(": ")
            title, words = (clean(title), words) if separator else ("", extract)
            yield from _parts(f"{key}-incorrect-{number}", title, words, longest)


def pubmedqa_contexts(path: Path, longest: int) -> Iterator[Document]:
    """Yield the sections of the abstracts of PubMedQA, without the conclusion, in parts of at most `longest` words."""
    for article in pubmedqa.entries(path):
        contexts, labels = texts(article, "CONTEXTS"), texts(article, "LABELS")
        if len(contexts) != len(labels):
            raise BadInput(f"{len(labels)} labels for {len(contexts)} contexts", f"{article.where}, LABELS")
        for number, (section, label) in enumerate(zip(contexts, labels, strict=True), 1):
            yield from _parts(f"{article.key}-{number}", f"PMID {article.key}: {label.lower()}", section, longest)


def _lines(path: Path) -> list[str]:
    """Return the lines of a text file, whose last one may lack its line break."""
    return text_of(path).removesuffix("\n").split("\n")


def _parts(key: str, title: str, content: str, longest: int) -> Iterator[Document]:
    """Yield a text in parts of at most `longest` words; all but the first have their number in their id."""
    words = content.split()
    for number, begin in enumerate(range(0, max(len(words), 1), longest), 1):
        part = " ".join(words[begin : begin + longest])
        yield Document(key if number == 1 else f"{key}-part-{number}", title, part)
