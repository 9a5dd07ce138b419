"""`python -m training corpus`: writes the passages that come with a question set as a corpus file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from training.errors import BadInput
from training.question_sets import corpora


def main(arguments: Namespace) -> dict[str, Any]:
    """Write the corpus; return its path, its number of passages, and how many were left out for what reason."""
    if (arguments.format == "popqa-passages") != (arguments.table is not None):
        raise BadInput("popqa-passages needs the table of PopQA's questions, and no other format has one", "--table")
    if arguments.format == "popqa-passages":
        documents = corpora.popqa_passages(arguments.source, arguments.table, arguments.words)
    else:
        documents = corpora.pubmedqa_contexts(arguments.source, arguments.words)
    return {"corpus": str(arguments.out), **corpora.write(documents, arguments.out)._asdict()}


def show(result: dict[str, Any]) -> str:
    """Return the path and the counts."""
    left_out = f"left out: {result['repeated']:,} repeated, {result['empty']:,} without a word"
    return f"{result['corpus']}: {result['passages']:,} passages; {left_out}"
