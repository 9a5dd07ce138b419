"""`python -m training search`: the best passages of an index for a query."""

from __future__ import annotations

import textwrap
import time
from argparse import Namespace
from typing import Any

from training.retrieval.index import open_index

SNIPPET = 200


def main(arguments: Namespace) -> dict[str, Any]:
    """Search and return the passages with their ranks from 1, and the seconds that it took to load and search."""
    began = time.perf_counter()
    passages = open_index(arguments.index).search(arguments.query, arguments.k)
    return {
        "index": arguments.index,
        "query": arguments.query,
        "passages": [{"rank": rank, **passage.to_dict()} for rank, passage in enumerate(passages, 1)],
        "seconds": time.perf_counter() - began,
    }


def show(result: dict[str, Any]) -> str:
    """Return two lines per passage: rank, score, id and title, then the beginning of the text."""
    lines = []
    for passage in result["passages"]:
        title = f" {_shown(passage['title'])}" if passage["title"] else ""
        lines += [
            f"{passage['rank']:>3}  {passage['score']:.4f}  [{_shown(passage['id'])}]{title}",
            f"     {_shown(passage['text'])}",
        ]
    return "\n".join(lines) or "no passage matches"


def _shown(text: str) -> str:
    """Return the beginning of a text on one line, without characters that a terminal would obey or hide."""
    line = textwrap.shorten(text, SNIPPET, placeholder=" …")
    return "".join(character if character.isprintable() else "\ufffd" for character in line)
