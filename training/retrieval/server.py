"""Answers searches for another process: a line of JSON asks on its input, and a line answers on its output.

`python -m training.retrieval.server` loads an index at its first search and keeps the last ones open, so that whoever
asks neither loads them anew nor needs the memory itself. A request is `{"index", "query", "k"}`. The answer is
`{"passages", "words"}`: what was found, and the words of the query without stop words; or `{"where", "why"}` if it
cannot be answered. The process ends when its input ends, or when nobody has asked for `IDLE_S` seconds.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

from training.errors import BadInput, ParleyError
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import open_index
from training.retrieval.words import words
from training.store import dumps

IDLE_S = 900.0


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
    return {"passages": [passage.to_dict() for passage in passages], "words": searched}


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
