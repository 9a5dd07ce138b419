"""Natural Questions, open (Lee et al. 2019): JSONL, `{"question": "…", "answer": ["…"]}`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from training.errors import BadInput
from training.question_sets.base import Entry, Question, QuestionSet, SetOptions, text, texts
from training.store import from_json, numbered_lines


def entries(path: Path) -> Iterator[Entry]:
    """Yield the lines of a file, not yet read, by their numbers."""
    try:
        for number, line in numbered_lines(path):
            yield Entry(f"{path.name} line {number}", str(number), line)
    except BadInput as error:
        raise BadInput(error.why, path.name) from error


def question(entry: Entry, _options: SetOptions) -> Question:
    """Return the question of one line; its id is the number of the line."""
    line = entry._replace(content=from_json(entry.content, entry.where))
    return Question(entry.where, f"nq-open-{entry.key}", text(line, "question"), texts(line, "answer"), {})


SET = QuestionSet("nq-open", "Natural Questions, open: short answers (JSONL)", "Apache-2.0", entries, question)
