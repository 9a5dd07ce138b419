"""EntityQuestions (Sciavolino et al. 2021): a JSON list for each Wikidata relation, `P17.dev.json`.

An entry is `{"question": "…", "answers": ["…"]}`. The relation is the part of the file's name before the first dot.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from training.errors import BadInput
from training.question_sets.base import Entry, Question, QuestionSet, SetOptions, in_order, json_file, text, texts


def entries(path: Path) -> Iterator[Entry]:
    """Yield the questions of a file, or of all files of a folder in the order of their names."""
    files = in_order(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        questions = json_file(file)
        if not isinstance(questions, list):
            raise BadInput("expected a list of questions", file.name)
        for number, content in enumerate(questions):
            yield Entry(f"{file.name}, entry {number}", f"{file.name.removesuffix('.json')}-{number}", content)


def question(entry: Entry, _options: SetOptions) -> Question:
    """Return the question of an entry; its id has the file's name and the entry's number, from 0."""
    relation = entry.key.rpartition("-")[0].partition(".")[0]
    return Question(
        entry.where,
        f"entityquestions-{entry.key}",
        text(entry, "question"),
        texts(entry, "answers"),
        {"relation": relation},
    )


SET = QuestionSet(
    "entityquestions", "EntityQuestions: one file per relation (JSON)", "MIT", entries, question, several=True
)
