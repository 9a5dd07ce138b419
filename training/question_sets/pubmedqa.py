"""PubMedQA (Jin et al. 2019): one JSON object from PubMed's number of an article to its question.

The right answer is the article's conclusion, `LONG_ANSWER`. The decision (yes, no or maybe) is metadata: the F1 score
of a word says nothing about whether a medical question was answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from training.errors import BadInput
from training.question_sets.base import Entry, Question, QuestionSet, SetOptions, json_file, text

DECISIONS = ("yes", "no", "maybe")
MAX_CHARS = 1000
"""Longest answer: a conclusion is longer than the game's answers of a few words."""


class PubmedqaOptions(SetOptions):
    """Options of an import of PubMedQA."""

    gold: Literal["conclusion", "decision"] = Field(
        default="conclusion",
        description="What counts as the right answer: the article's conclusion, or the decision (yes, no or maybe).",
    )


def entries(path: Path) -> Iterator[Entry]:
    """Yield the articles of a file by their numbers."""
    articles = json_file(path)
    if not isinstance(articles, dict):
        raise BadInput("expected an object from numbers of articles to questions", path.name)
    for pmid, article in articles.items():
        yield Entry(f"{path.name}, {pmid}", pmid, article)


def question(entry: Entry, options: PubmedqaOptions) -> Question:
    """Return the question of an article."""
    asked, conclusion = text(entry, "QUESTION"), text(entry, "LONG_ANSWER")
    decision = text(entry, "final_decision") if "final_decision" in entry.content else ""
    if decision and decision not in DECISIONS:
        raise BadInput(f"expected {', '.join(DECISIONS)}, not {decision[:40]!r}", f"{entry.where}, final_decision")
    if options.gold == "decision" and not decision:
        raise BadInput("missing", f"{entry.where}, final_decision")
    return Question(
        entry.where,
        f"pubmedqa-{entry.key}",
        asked,
        (decision if options.gold == "decision" else conclusion,),
        {"decision": decision} if decision else {},
    )


SET = QuestionSet(
    "pubmedqa",
    "PubMedQA: questions of PubMed articles (JSON)",
    "MIT",
    entries,
    question,
    options=PubmedqaOptions,
    settings={"max_chars": MAX_CHARS},
)
