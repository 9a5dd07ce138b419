"""PopQA (Mallen et al. 2023): a table with commas or tabs, whose columns `possible_answers` holds a JSON list.

Read are `id`, `question`, `possible_answers`, `prop` (the relation) and `s_pop` (monthly views of the subject's page).
Rare subjects are those at or below a quantile of `s_pop` over the whole file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import Field

from training.errors import BadInput
from training.question_sets.base import Entry, Question, QuestionSet, SetOptions, as_texts, text, text_of
from training.store import from_json

COLUMNS = ("id", "question", "possible_answers", "prop", "s_pop")
_VIEWS = re.compile("[0-9]{1,18}")
"""A whole number of 64 bits."""


class PopqaOptions(SetOptions):
    """Options of an import of PopQA."""

    popularity: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Only questions about subjects at or below this quantile of popularity: 0.5 is the median, 1 takes "
        "all.",
    )


def entries(path: Path) -> Iterator[Entry]:
    """Yield the rows of a table by column; the place of a row is the line on which it begins."""
    table = text_of(path)
    delimiter = "\t" if "\t" in table.partition("\n")[0] else ","
    rows = csv.reader(io.StringIO(table, newline=""), delimiter=delimiter, strict=True)
    header, line = None, 1
    try:
        for row in rows:
            where, line = f"{path.name} line {line}", rows.line_num + 1
            if header is None:
                header = _header(row, where)
            elif row:
                if len(row) != len(header):
                    raise BadInput(f"expected {len(header)} columns, not {len(row)}", where)
                content = dict(zip(header, row, strict=True))
                yield Entry(where, content["id"], content)
    except csv.Error as error:
        raise BadInput(f"not a table: {error}", f"{path.name} line {line}") from error


def _header(row: list[str], where: str) -> list[str]:
    for column in COLUMNS:
        if column not in row:
            raise BadInput("the column is missing", f"{where}, {column}")
    return row


def question(entry: Entry, _options: PopqaOptions) -> Question:
    """Return the question of a row."""
    where = f"{entry.where}, possible_answers"
    answers = as_texts(from_json(text(entry, "possible_answers"), where), where)
    popularity = text(entry, "s_pop")
    if not _VIEWS.fullmatch(popularity):
        raise BadInput(f"expected a whole number, not {popularity[:40]!r}", f"{entry.where}, s_pop")
    return Question(
        entry.where,
        f"popqa-{text(entry, 'id')}",
        text(entry, "question"),
        answers,
        {"relation": text(entry, "prop"), "popularity": str(int(popularity))},
    )


def rare(questions: list[Question], options: PopqaOptions) -> list[Question]:
    """Return the questions about subjects at or below the quantile of popularity, in order."""
    if not questions:
        return []
    views = [int(question.metadata["popularity"]) for question in questions]
    highest = float(np.quantile(views, options.popularity))
    return [question for question, number in zip(questions, views, strict=True) if number <= highest]


SET = QuestionSet("popqa", "PopQA: questions about entities (CSV or TSV)", "MIT", entries, question, rare, PopqaOptions)
