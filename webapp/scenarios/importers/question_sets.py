"""Reads question sets as scenarios of `qa_society`: PopQA, EntityQuestions, NQ-open, PubMedQA.

Questions that cannot be scored, and those that the options leave out, are notices. The files are described in
`training.question_sets`.
"""

from __future__ import annotations

from pathlib import Path

from training.dataset import DatasetLine
from training.errors import BadInput
from training.question_sets import Question, QuestionSet, SetOptions, scenario
from training.question_sets.base import add
from webapp.scenarios.importers.reading import Progress, Reading, noted, storable


def read(source: QuestionSet, path: Path, progress: Progress, options: SetOptions) -> Reading:
    """Read every question of a file, or of a folder's files where the set has several."""
    reading, questions = Reading(), dict[str, Question]()
    lines: dict[str, DatasetLine] = {}
    entries = list(source.entries(path))
    for number, entry in enumerate(entries, 1):
        with noted(reading, entry.where):
            question = source.question(entry, options)
            if question.scorable:
                add(questions, question)
                made = DatasetLine(scenario=scenario(source, question, options))
                lines[question.id] = storable(made, entry.where)
            else:
                reading.notice(entry.where, "no answer has a word or a number, so F1 cannot be computed; left out")
        progress(number, len(entries))
    if not entries:
        reading.error(BadInput("there is no question", path.name))
    if not reading.errors:
        kept = source.select(list(questions.values()), options)
        reading.lines += [lines[question.id] for question in kept]
        if left_out := len(questions) - len(kept):
            reading.notice(path.name, f"the options leave out {left_out} questions")
    return reading
