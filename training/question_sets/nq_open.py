"""Natural Questions, open (Lee et al. 2019): JSONL, `{"question": "…", "answer": ["…"]}`."""

from __future__ import annotations

from training.question_sets.base import Entry, Question, QuestionSet, SetOptions, json_lines, text, texts


def question(entry: Entry, _options: SetOptions) -> Question:
    """Return the question of one line; its id is the number of the line."""
    return Question(entry.where, f"nq-open-{entry.key}", text(entry, "question"), texts(entry, "answer"), {})


SET = QuestionSet("nq-open", "Natural Questions, open: short answers (JSONL)", "Apache-2.0", json_lines, question)
