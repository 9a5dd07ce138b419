"""Answers searches for another process: a line of JSON asks on its input, and a line answers on its output.

`python -m training.retrieval.server` loads an index at its first search and keeps the last ones open, so that whoever
asks neither loads them anew nor needs the memory itself. A request is `{"index", "query", "k"}`. The answer is
`{"passages", "words"}`: what was found, and the words of the query without stop words; or `{"where", "why"}` if it
cannot be answered. Of long passages it has the beginning, with `cut` true, so that an answer is bounded. The
process ends when its input ends, or when nobody has asked for `IDLE_S` seconds.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

from training.errors import BadInput, ParleyError
from training.retrieval.base import Passage
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import open_index
from training.retrieval.words import words
from training.store import dumps

IDLE_S = 900.0
MOST_CHARACTERS = 2_000_000
"""Characters of all texts of an answer; each passage has the same share."""
LONGEST_TITLE = 1_000
"""Characters of a title, and of an id."""


def answer(line: bytes) -> dict[str, Any]:
    """Return the answer to one request."""
    try:
        request = json.loads(line)
        passages = open_index(request["index"]).search(request["query"], request["k"])
    except BadInput as error:
        return {"where": error.where, "why": error.why}
    except (ParleyError, OSError) as error:
        return {"where": "", "why": str(error)}
    left_out = Bm25Settings().left_out()
    searched = sorted({word for word in words(request["query"]) if word not in left_out})
    most = MOST_CHARACTERS // max(1, request["k"])
    return {"passages": [_beginning(passage, most) for passage in passages], "words": searched}


def _beginning(passage: Passage, most: int) -> dict[str, Any]:
    """Return a passage with at most so many characters of its text, and whether something was cut."""
    whole = passage.to_dict()
    shown = {"id": passage.id[:LONGEST_TITLE], "title": passage.title[:LONGEST_TITLE], "text": passage.text[:most]}
    return {**whole, **shown, "cut": any(len(text) < len(whole[name]) for name, text in shown.items())}


def main(idle_s: float = IDLE_S) -> None:
    """Answer until the input ends, or nobody asks any more."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    while select.select([0], [], [], idle_s)[0] and (line := sys.stdin.buffer.readline()):
        text = dumps(answer(line)).encode("utf-8", "replace") + b"\n"
        with os.fdopen(os.dup(answers), "wb") as output:
            output.write(text)


if __name__ == "__main__":
    main()
