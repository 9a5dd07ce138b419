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
from webapp.accounts.models import User
from webapp.core import queue as hints
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue, Target, TargetQuerySet
from webapp.judgments.results import (
    aggregated,
    calibration,
    disagreement,
    queue_agreement,
    similarity,
    summary,
    withheld,
)
from webapp.judgments.results.withheld import NOTHING, Withheld

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
    """A kind of analysis: `state` names all that it depends on, `compute` makes it and reports its progress.

    One that is `by_reader` is also given what is withheld from its reader, and kept apart for every such set. Pages of
    the others are closed to whoever has yet to judge something of the queue.
    """

    record: type[Record]
    state: Callable[[Queue], State]
    compute: Callable[..., Record]
    by_reader: bool = False


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


def state_of_people(queue: Queue) -> State:
    """Return the state of the people's judgments of a queue, and of the decisions on them."""
    return _state(_judgments(Target.objects.filter(queue=queue)).filter(author__isnull=False))


def state_of_annotators(queue: Queue) -> State:
    """Return the state of the annotators' judgments of a queue: decisions have no part in agreement."""
    return _state(_judgments(Target.objects.filter(queue=queue)).filter(author__isnull=False, decides=False))


def state_of_all(queue: Queue) -> State:
    """Return the state of all judgments under the codebook version of a queue, whoever gave them."""
    return _state(_judgments(Target.objects.all()).filter(codebook_version=queue.codebook_version_id))


def state_of_authors(queue: Queue) -> State:
    """Return the state of all judgments of a queue, and of those that came with its conversations."""
    outside = withheld.outside(queue).aggregate(outside=Count("pk"), newest_outside=Max("pk"))
    return {**_state(_judgments(Target.objects.filter(queue=queue))), **outside}


def _judgments(targets: TargetQuerySet) -> JudgmentQuerySet:
    """The judgments of targets, whose games may be judged: consent is looked up once for each target."""
    return Judgment.everything.filter(target__in=targets)


def _state(rows: JudgmentQuerySet) -> State:
    decisions = Count("pk", filter=Q(decides=True))
    return rows.aggregate(count=Count("pk"), newest=Max("pk"), last=Max("updated_at"), decisions=decisions)


def _digest(state: State) -> str:
    return hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()


KINDS: dict[str, Kind] = {
    "agreement": Kind(queue_agreement.QueueAgreement, state_of_annotators, queue_agreement.compute),
    "disagreement": Kind(disagreement.QueueDisagreement, state_of_annotators, disagreement.compute),
    "similarity": Kind(similarity.QueueSimilarity, state_of_annotators, similarity.compute, by_reader=True),
    "summary": Kind(summary.QueueSummary, state_of_authors, summary.compute, by_reader=True),
    "truth": Kind(aggregated.QueueTruth, state_of_people, aggregated.compute),
    "calibration": Kind(calibration.QueueCalibration, state_of_all, calibration.compute),
}
"""The analyses by name."""


def of_queue(queue: Queue, name: str, reader: User | None = None) -> Analysis:
    """Return an analysis of a queue, and have it computed if there is none of the present judgments.

    One that is `by_reader` holds what this reader may know; without a reader, everything.
    """
    kind, hidden = KINDS[name], _withheld(queue, name, reader)
    state = kind.state(queue)
    result, before = _stored(queue, name, hidden)
    if result is not None and before == _digest(state):
        return Analysis(result, current=True, withheld=hidden)
    if state["count"] <= (FEWEST if name == "truth" else FEW):
        return Analysis(_computed(queue, name, hidden, state), current=True, withheld=hidden)
    done, total, failed = _requested(queue, name, hidden, reader)
    return Analysis(result, current=False, withheld=hidden, done=done, total=total, failed=failed)


def compute(*, queue_id: int, name: str, reader_id: int | None = None) -> Record | None:
    """Compute an analysis and keep it; None for a queue or a reader that was deleted."""
    queue = Queue.objects.select_related("codebook_version__codebook").filter(pk=queue_id).first()
    reader = _reader(reader_id)
    if queue is None or (reader is None) != (reader_id is None):
        return None
    return _computed(queue, name, _withheld(queue, name, reader), KINDS[name].state(queue))


def fail(*, queue_id: int, name: str, reader_id: int | None = None) -> None:
    """Note that an analysis failed, so that pages do not wait for it."""
    queue = Queue.objects.filter(pk=queue_id).first()
    if queue is not None:
        cache.set(_state_key(queue_id, name, _withheld(queue, name, _reader(reader_id))), FAILED, PAUSE_S)


def _reader(reader_id: int | None) -> User | None:
    return None if reader_id is None else User.objects.filter(pk=reader_id).first()


def _withheld(queue: Queue, name: str, reader: User | None) -> Withheld:
    return withheld.of_reader(queue, reader) if KINDS[name].by_reader and reader is not None else NOTHING


def _computed(queue: Queue, name: str, hidden: Withheld, state: State) -> Record:
    """Compute and keep an analysis; `state` was read before, so that judgments that come meanwhile make it outdated."""
    kind, key = KINDS[name], _state_key(queue.pk, name, hidden)

    def report(done: int, total: int) -> None:
        cache.set(key, f"{done}/{total}", WORKING_S)

    result = kind.compute(queue, report, hidden) if kind.by_reader else kind.compute(queue, report)
    cache.set(_key(queue.pk, name, hidden), {"state": _digest(state), "result": result.to_dict()}, KEPT_S)
    cache.delete(key)
    return result


def _stored(queue: Queue, name: str, hidden: Withheld) -> tuple[Record | None, str]:
    stored = cache.get(_key(queue.pk, name, hidden))
    if stored is None:
        return None, ""
    try:
        return KINDS[name].record.from_dict(stored["result"]), stored["state"]
    except BadInput:  # an earlier release wrote it
        return None, ""


def _requested(queue: Queue, name: str, hidden: Withheld, reader: User | None) -> tuple[int, int, bool]:
    """Ask a worker unless one is at work; return what is done, of how much, and whether the last try failed."""
    key = _state_key(queue.pk, name, hidden)
    if cache.add(key, ASKED, ASKED_S):
        whose = [reader.pk] if hidden and reader is not None else []
        if not hints.publish(hints.ANALYSE_QUEUE, queue.pk, name, *whose, expires=ASKED_S):
            cache.delete(key)
        return 0, 0, False
    state = str(cache.get(key, ASKED))
    if "/" not in state:
        return 0, 0, state == FAILED
    done, total = map(int, state.split("/"))
    return done, total, False


def _key(queue_id: int, name: str, hidden: Withheld) -> str:
    return f"queue-analysis:{queue_id}:{name}" + (f":{hidden.digest}" if hidden else "")


def _state_key(queue_id: int, name: str, hidden: Withheld) -> str:
    return f"{_key(queue_id, name, hidden)}:state"
