"""Analyses of a queue's judgments: computed in the request where there are few of them, else by a worker.

A result is cached for a month under the state of what it was computed from. Where that has changed, pages show the last
result and say so until the next one is there. Without a cache or a worker there is no analysis of a large queue, and
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
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue
from webapp.judgments.results import aggregated, calibration, queue_agreement

KEPT_S = 30 * 24 * 3600
ASKED_S = 60
"""A worker that has not begun by then is asked again: its task may be lost."""
WORKING_S = 600
"""A worker that has not reported for so long is taken for dead."""
PAUSE_S = 600
"""How long no worker is asked again after a failure."""
FEW, FEWEST = 100, 20
"""Judgments that are analysed in the request, and of those for the truth, whose models are fitted many times."""
ASKED, FAILED = "asked", "failed"


State = dict[str, Any]
"""All that an analysis depends on; `count` is the number of its judgments."""


@dataclass(frozen=True)
class Kind:
    """A kind of analysis: `state` names all that it depends on, `compute` makes it and reports its progress."""

    record: type[Record]
    state: Callable[[Queue], State]
    compute: Callable[[Queue, Callable[[int, int], None]], Record]


@dataclass(frozen=True)
class Analysis:
    """What a page shows: the last result, and if it is not of the present judgments, how far the next one is."""

    result: Any
    current: bool
    done: int = 0
    total: int = 0
    failed: bool = False


def state_of_people(queue: Queue) -> State:
    """Return the state of the people's judgments of a queue, and of the decisions on them."""
    return _state(Judgment.objects.filter(target__queue=queue, author__isnull=False))


def state_of_annotators(queue: Queue) -> State:
    """Return the state of the annotators' judgments of a queue: decisions have no part in agreement."""
    return _state(Judgment.objects.filter(target__queue=queue, author__isnull=False, decides=False))


def state_of_all(queue: Queue) -> State:
    """Return the state of all judgments under the codebook version of a queue, whoever gave them."""
    return _state(calibration.judgments_of(queue))


def _state(rows: JudgmentQuerySet) -> State:
    decisions = Count("pk", filter=Q(decides=True))
    return rows.aggregate(count=Count("pk"), newest=Max("pk"), last=Max("updated_at"), decisions=decisions)


def _digest(state: State) -> str:
    return hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()


KINDS: dict[str, Kind] = {
    "agreement": Kind(queue_agreement.QueueAgreement, state_of_annotators, queue_agreement.compute),
    "truth": Kind(aggregated.QueueTruth, state_of_people, aggregated.compute),
    "calibration": Kind(calibration.QueueCalibration, state_of_all, calibration.compute),
}
"""The analyses by name."""


def of_queue(queue: Queue, name: str) -> Analysis:
    """Return an analysis of a queue, and have it computed if there is none of the present judgments."""
    kind = KINDS[name]
    state = kind.state(queue)
    result, before = _stored(queue, name)
    if result is not None and before == _digest(state):
        return Analysis(result, current=True)
    if state["count"] <= (FEWEST if name == "truth" else FEW):
        return Analysis(compute(queue_id=queue.pk, name=name), current=True)
    done, total, failed = _requested(queue, name)
    return Analysis(result, current=False, done=done, total=total, failed=failed)


def compute(*, queue_id: int, name: str) -> Record | None:
    """Compute an analysis and keep it; None for a queue that was deleted."""
    queue = Queue.objects.select_related("codebook_version__codebook").filter(pk=queue_id).first()
    if queue is None:
        return None
    kind, key = KINDS[name], _state_key(queue_id, name)
    state = kind.state(queue)
    result = kind.compute(queue, lambda done, total: cache.set(key, f"{done}/{total}", WORKING_S))
    cache.set(_key(queue_id, name), {"state": _digest(state), "result": result.to_dict()}, KEPT_S)
    cache.delete(key)
    return result


def fail(*, queue_id: int, name: str) -> None:
    """Note that an analysis failed, so that pages do not wait for it."""
    cache.set(_state_key(queue_id, name), FAILED, PAUSE_S)


def _stored(queue: Queue, name: str) -> tuple[Record | None, str]:
    stored = cache.get(_key(queue.pk, name))
    if stored is None:
        return None, ""
    try:
        return KINDS[name].record.from_dict(stored["result"]), stored["state"]
    except BadInput:  # an earlier release wrote it
        return None, ""


def _requested(queue: Queue, name: str) -> tuple[int, int, bool]:
    """Ask a worker unless one is at work; return what is done, of how much, and whether the last try failed."""
    key = _state_key(queue.pk, name)
    if cache.add(key, ASKED, ASKED_S):
        if not hints.publish(hints.ANALYSE_QUEUE, queue.pk, name, expires=ASKED_S):
            cache.delete(key)
        return 0, 0, False
    state = str(cache.get(key, ASKED))
    if "/" not in state:
        return 0, 0, state == FAILED
    done, total = map(int, state.split("/"))
    return done, total, False


def _key(queue_id: int, name: str) -> str:
    return f"queue-analysis:{queue_id}:{name}"


def _state_key(queue_id: int, name: str) -> str:
    return f"{_key(queue_id, name)}:state"
