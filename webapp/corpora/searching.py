"""Searches in indexes, by a process for each kind of index, so that no page waits for another kind or loads an index.

The process (`training.retrieval.server`) is started by the first search; it ends with this one, or if nobody searches.
A dense search needs torch, which no process of the site may load. It answers one search after the other: few may wait
for it at a time, of one person fewer, and none for long, so that slow searches leave the site's threads to other pages.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from django.conf import settings

from training.errors import BadInput, OutsideError
from training.retrieval.base import Passage
from webapp.accounts.models import User
from webapp.core import children
from webapp.corpora import services
from webapp.corpora.models import Corpus, Index

LONGEST_QUERY = 1000
MOST = 100
"""Passages of one search."""
TIMEOUT_S = 60.0
"""The first dense search imports torch, which takes ten seconds on one core."""
WAIT_S = 20.0
"""How long a search waits for the ones before it."""
MOST_ASKED = 12
"""Searches that a process answers or keeps waiting."""
MOST_OF_ONE = 4
"""Those of one person."""
COMMAND = [sys.executable, "-m", "training.retrieval.server"]


class SearchError(OutsideError):
    """The search process does not answer."""

    kind = "search"


class FoundPassage(Passage):
    """A passage as the search process returns it; `cut`: whether its text, title or id goes on."""

    cut: bool = False


class Results(NamedTuple):
    """The passages, best first, and the words that were searched for, folded as `training.retrieval.words` does."""

    passages: list[FoundPassage]
    words: frozenset[str]


class SearchProcess:
    """One process, which answers one search at a time; threads wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._counting = threading.Lock()
        self._asked: Counter[int] = Counter()

    def ask(self, index: str, query: str, k: int, by: int) -> Results:
        """Return what it finds in an index; raise `BadInput` for a refusal, `SearchError` without an answer.

        `by` is the key of the person who asks.
        """
        with self._place(by):
            if not self._lock.acquire(timeout=WAIT_S):
                raise SearchError("too many people search at the same time; try again in a minute")
            try:
                request = json.dumps({"index": index, "query": query, "k": k}).encode() + b"\n"
                line = self._answer(request) or self._answer(request)  # it may have ended just now, as nobody had asked
            finally:
                self._lock.release()
        if not line:
            raise SearchError("the search process ended before it answered; the site's log says why")
        answer = json.loads(line)
        if "why" in answer:
            raise BadInput(answer["why"], answer["where"])
        return Results([FoundPassage.from_dict(passage) for passage in answer["passages"]], frozenset(answer["words"]))

    @contextlib.contextmanager
    def _place(self, by: int) -> Iterator[None]:
        """Count a search while it waits or is answered; raise `SearchError` at once if there are too many."""
        with self._counting:
            if self._asked[by] >= MOST_OF_ONE:
                raise SearchError("your earlier searches are not answered yet; wait for them")
            if self._asked.total() >= MOST_ASKED:
                raise SearchError("too many people search at the same time; try again in a minute")
            self._asked[by] += 1
        try:
            yield
        finally:
            with self._counting:
                self._asked[by] -= 1
                self._asked += Counter()  # without those of nobody

    def _answer(self, request: bytes) -> bytes:
        """Return the answer; nothing if the process has ended. One that is too slow is ended."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            if not select.select([process.stdout], [], [], TIMEOUT_S)[0]:
                self._end()
                why = f"the search took longer than {TIMEOUT_S:.0f} s; try again, or search for rarer words"
                raise SearchError(why)
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            self._end()  # its exit may not be known yet, and the next search starts another
            return b""
        return line

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=settings.BASE_DIR,
                env=children.environment({}, {}),
                start_new_session=True,
            )
        return self._process

    def _end(self) -> None:
        """Kill the process, if there is one, and close its pipes."""
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(BrokenPipeError):
                self._process.communicate()
            self._process = None

    def close(self) -> None:
        """End the process once it has answered; the next search starts another."""
        with self._lock:
            self._end()


PROCESSES = {kind: SearchProcess() for kind in Index.Kind.values}


def search(corpus: Corpus, kind: str, query: str, k: int, by: User) -> Results:
    """Return at most `k` passages of a corpus for a query of `by`, the best first.

    Raises `SearchError` if there is no answer now, `BadInput` for a query that is too long, and for an index that is
    not ready or whose files are gone.
    """
    if len(query) > LONGEST_QUERY:
        raise BadInput(f"at most {LONGEST_QUERY} characters", "q")
    if not 1 <= k <= MOST:
        raise BadInput(f"a number from 1 to {MOST}", "k")
    return PROCESSES[kind].ask(str(services.local_folder(ready_index(corpus, kind))), query, k, by.pk)


def ready_index(corpus: Corpus, kind: str) -> Index:
    """Return the index of a kind; raise `BadInput` unless it is complete; where it cannot be built, it says why."""
    index = corpus.index(kind)
    if index is None:
        services.check_kind(kind)
        raise BadInput(f"there is no {Index.Kind(kind).label} index of {corpus} yet", "kind")
    if index.state != Index.State.READY:
        why = f": {index.error}" if index.state == Index.State.FAILED else ""
        raise BadInput(
            f"the {index.get_kind_display()} index of {corpus} is {index.get_state_display().lower()}{why}", "kind"
        )
    return index
