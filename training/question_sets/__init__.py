"""Question sets in the files of their authors, as scenarios of `qa_society`, and the passages that come with them.

`SETS` has the sets by name. `entries` and `Question` are the same for all; each module knows the files of one set.
`corpora` writes passages in the form that `training.retrieval` indexes.
"""

from __future__ import annotations

from training.question_sets import entity_questions, nq_open, popqa, pubmedqa
from training.question_sets.base import Entry, Question, QuestionSet, SetOptions, read, scenario

__all__ = ["SETS", "Entry", "Question", "QuestionSet", "SetOptions", "read", "scenario"]

SETS = {each.name: each for each in (popqa.SET, entity_questions.SET, nq_open.SET, pubmedqa.SET)}
"""The question sets by name."""
