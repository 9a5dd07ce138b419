"""Results that are computed in the request where they are of few judgments, else by a worker.

A result is cached for a month under the state of what it was computed from. Where that has changed, pages show the last
result and say so until the next one is there. Without a cache or a worker there is no result of many judgments, and
after a failure none for ten minutes; nothing else depends on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max, Q

from training.errors import BadInput
from training.reading import Record
from webapp.core import queue as hints
from webapp.judgments.models import JudgmentQuerySet
from webapp.judgments.results.withheld import NOTHING, Withheld

KEPT_S = 30 * 24 * 3600
ASKED_S = 60
"""A worker that has not begun by then is asked again: its task may be lost."""
WORKING_S = 600
"""A worker that has not reported for so long is taken for dead."""
PAUSE_S = 600
"""How long no worker is asked again after a failure."""
FEW = 100
"""Judgments whose results are computed in the request."""
ASKED, FAILED = "asked", "failed"

Report = Callable[[int, int], None]
"""Takes how much is done, of how much."""
State = dict[str, Any]
"""All that a result depends on; `count` is the number of its judgments."""


@dataclass(frozen=True)
class Work:
    """A result under its key: `state` is read and `compute` called only where they are needed.

    `task` and `arguments` ask a worker for it. `withheld` is what it leaves out.
    """

    key: str
    record: type[Record]
    state: Callable[[], State]
    compute: Callable[[Report], Record]
    task: hints.Task
    arguments: tuple[int | str, ...]
    few: int
    withheld: Withheld = NOTHING


@dataclass(frozen=True)
class Analysis:
    """What a page shows: the last result, and if it is not of the present judgments, how far the next one is.

    `withheld` is what it leaves out.
    """

    result: Any
    current: bool
    withheld: Withheld = NOTHING
    done: int = 0
    total: int = 0
    failed: bool = False


def state_of(rows: JudgmentQuerySet) -> State:
    """Return the state of judgments: it changes whenever one of them is added, changed, decided on or withdrawn."""
    decisions = Count("pk", filter=Q(decides=True))
    return rows.aggregate(count=Count("pk"), newest=Max("pk"), last=Max("updated_at"), decisions=decisions)


def present(work: Work) -> Analysis:
    """Return the result, and have it computed if there is none of the present judgments."""
    state = work.state()
    result, before = _stored(work)
    if result is not None and before == _digest(state):
        return Analysis(result, current=True, withheld=work.withheld)
    if state["count"] <= work.few:
        return Analysis(_computed(work, state), current=True, withheld=work.withheld)
    done, total, failed = _requested(work)
    return Analysis(result, current=False, withheld=work.withheld, done=done, total=total, failed=failed)


def compute(work: Work) -> Record:
    """Compute a result and keep it."""
    return _computed(work, work.state())


def fail(work: Work) -> None:
    """Note that a result could not be computed, so that pages do not wait for it."""
    cache.set(_progress(work), FAILED, PAUSE_S)


def _computed(work: Work, state: State) -> Record:
    """Compute and keep a result; `state` was read before, so that judgments that come meanwhile make it outdated."""

    def report(done: int, total: int) -> None:
        cache.set(_progress(work), f"{done}/{total}", WORKING_S)

    result = work.compute(report)
    cache.set(work.key, {"state": _digest(state), "result": result.to_dict()}, KEPT_S)
    cache.delete(_progress(work))
    return result


def _stored(work: Work) -> tuple[Record | None, str]:
    stored = cache.get(work.key)
    if stored is None:
        return None, ""
    try:
        return work.record.from_dict(stored["result"]), stored["state"]
    except BadInput:  # an earlier release wrote it
        return None, ""


def _requested(work: Work) -> tuple[int, int, bool]:
    """Ask a worker unless one is at work; return what is done, of how much, and whether the last try failed."""
    key = _progress(work)
    if cache.add(key, ASKED, ASKED_S):
        if not hints.publish(work.task, *work.arguments, expires=ASKED_S):
            cache.delete(key)
        return 0, 0, False
    progress = str(cache.get(key, ASKED))
    if "/" not in progress:
        return 0, 0, progress == FAILED
    done, total = map(int, progress.split("/"))
    return done, total, False


def _digest(state: State) -> str:
    return hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()


def _progress(work: Work) -> str:
    """The key under which a worker's progress is kept."""
    return f"{work.key}:state"
