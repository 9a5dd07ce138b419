"""Analyses of a queue's judgments by name: see `results.background` for where and when they are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from django.db.models import Count, Max

from training.labels.truth import METHODS
from training.reading import Record
from webapp.accounts.models import User
from webapp.core.queue import ANALYSE_QUEUE
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue
from webapp.judgments.results import (
    aggregated,
    background,
    calibration,
    disagreement,
    queue_agreement,
    similarity,
    summary,
    withheld,
)
from webapp.judgments.results.background import Analysis, Report, State, Work, state_of
from webapp.judgments.results.withheld import NOTHING, Awaited, Withheld

FEWEST = 20
"""Judgments whose truth is computed in the request: its models are fitted many times."""


@dataclass(frozen=True)
class Kind:
    """A kind of analysis: `state` names all that it depends on, `compute` makes it and reports its progress.

    One that is `by_reader` leaves out what is withheld from its reader, and is kept apart for every such set. Pages of
    the others are closed to whoever has yet to judge something of the queue, and their `record` has a method `without`,
    which leaves out single targets. It is computed in the request of at most `few` judgments (None: `background.FEW`).
    """

    record: type[Record]
    state: Callable[[Queue], State]
    compute: Callable[[Queue, Report, Withheld], Record]
    by_reader: bool = False
    few: int | None = None


def state_of_people(queue: Queue) -> State:
    """Return the state of the people's judgments of a queue, and of the decisions on them."""
    return state_of(_judgments(queue).filter(author__isnull=False))


def state_of_truth(queue: Queue) -> State:
    """Return the same with the methods, which a later release may add to."""
    return {**state_of_people(queue), "methods": tuple(METHODS)}


def state_of_annotators(queue: Queue) -> State:
    """Return the state of the annotators' judgments of a queue: decisions have no part in agreement."""
    return state_of(_judgments(queue).filter(author__isnull=False, decides=False))


def state_of_all(queue: Queue) -> State:
    """Return the state of all judgments under the codebook version of a queue, whoever gave them."""
    rows = Judgment.everything.filter(target__isnull=False, codebook_version=queue.codebook_version_id)
    return state_of(rows.consented())


def state_of_authors(queue: Queue, counted: State | None = None) -> State:
    """Return the state of all judgments of a queue, and of those that came with its conversations.

    `counted`: the state of the judgments, if it was read before.
    """
    outside = withheld.outside(queue).aggregate(outside=Count("pk"), newest_outside=Max("pk"))
    return {**(counted or state_of(_judgments(queue))), **outside}


def _judgments(queue: Queue) -> JudgmentQuerySet:
    """The judgments of a queue whose games may be judged."""
    return Judgment.everything.filter(queue=queue).consented()


def _of_all(compute: Callable[[Queue, Report], Record]) -> Callable[[Queue, Report, Withheld], Record]:
    """The same for a kind from which nothing is withheld."""
    return lambda queue, report, _withheld: compute(queue, report)


KINDS: dict[str, Kind] = {
    "agreement": Kind(queue_agreement.QueueAgreement, state_of_annotators, _of_all(queue_agreement.compute)),
    "disagreement": Kind(disagreement.QueueDisagreement, state_of_annotators, _of_all(disagreement.compute)),
    "similarity": Kind(similarity.QueueSimilarity, state_of_annotators, similarity.compute, by_reader=True),
    "summary": Kind(summary.QueueSummary, state_of_authors, summary.compute, by_reader=True),
    "truth": Kind(aggregated.QueueTruth, state_of_truth, _of_all(aggregated.compute), few=FEWEST),
    "calibration": Kind(calibration.QueueCalibration, state_of_all, _of_all(calibration.compute)),
}
"""The analyses by name."""


def of_queue(
    queue: Queue, name: str, reader: User | None = None, *, awaited: Awaited | None = None, state: State | None = None
) -> Analysis:
    """Return an analysis of a queue, and have it computed if there is none of the present judgments.

    One that is `by_reader` holds what this reader may know; without a reader, everything. `awaited`, what the reader
    has yet to judge, and `state`, on which the analysis depends, are read unless the page knows them.
    """
    work = _work(queue, name, reader, awaited)
    return background.present(work if state is None else replace(work, state=lambda: state))


def compute(*, queue_id: int, name: str, reader_id: int | None = None) -> Record | None:
    """Compute an analysis and keep it; None for a queue or a reader that was deleted."""
    work = _work_of(queue_id, name, reader_id)
    return None if work is None else background.compute(work)


def fail(*, queue_id: int, name: str, reader_id: int | None = None) -> None:
    """Note that an analysis failed, so that pages do not wait for it."""
    work = _work_of(queue_id, name, reader_id)
    if work is not None:
        background.fail(work)


def _work_of(queue_id: int, name: str, reader_id: int | None) -> Work | None:
    queue = Queue.objects.select_related("codebook_version__codebook").filter(pk=queue_id).first()
    reader = None if reader_id is None else User.objects.filter(pk=reader_id).first()
    return None if queue is None or (reader is None) != (reader_id is None) else _work(queue, name, reader)


def _work(queue: Queue, name: str, reader: User | None, awaited: Awaited | None = None) -> Work:
    kind, hidden, key = KINDS[name], NOTHING, f"queue-analysis:{queue.pk}:{name}"
    if kind.by_reader and reader is not None:
        hidden = withheld.of_reader(queue, reader, awaited)
    whose = [reader.pk] if hidden and reader is not None else []
    return Work(
        key=f"{key}:{hidden.digest}" if hidden else key,
        record=kind.record,
        state=partial(kind.state, queue),
        compute=lambda report: kind.compute(queue, report, hidden),
        task=ANALYSE_QUEUE,
        arguments=(queue.pk, name, *whose),
        few=background.FEW if kind.few is None else kind.few,
        withheld=hidden,
    )
