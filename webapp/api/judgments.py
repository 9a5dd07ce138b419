"""Judgments over the API: read judgments, list the assigned seats, add judgments, export the labels of a queue."""

from __future__ import annotations

from typing import Any, Literal

from django.db.models import Q
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router, Status
from ninja.errors import HttpError
from ninja.pagination import LimitOffsetPagination, paginate

from training.errors import BadInput
from training.labels.exchange import format_named
from training.records import Label as LabelRecord
from webapp.accounts.models import User
from webapp.accounts.permissions import get_or_404
from webapp.api.access import Key, caller
from webapp.api.shapes import AnalysisOut, DecisionIn, JudgmentIn, JudgmentOut, LabelShape, TargetOut
from webapp.judgments.annotating import services as annotating
from webapp.judgments.datasets import files
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue, Target, TargetQuerySet
from webapp.judgments.results import access, analyses, decisions, withheld

router = Router(tags=["judgments"])
NOT_SHOWN = (
    "history", "cost", "codebook_version__labels", "codebook_version__guideline", "target__turns",
    "target__queue__excluded", "target__queue__selection",
)  # fmt: skip
"""Columns that no `JudgmentOut` reads: of many rows, they take longer to load than the others."""


def _visible(request: HttpRequest) -> JudgmentQuerySet:
    user = caller(request)
    if not user.is_annotator:
        raise Http404
    rows = Judgment.objects.readable_by(user).with_authors().select_related("target__queue", "judge__remote")
    return rows.defer(*NOT_SHOWN)


@router.get("", response=list[JudgmentOut])
@paginate(LimitOffsetPagination)
def list_judgments(request: HttpRequest, queue: int | None = None, match: int | None = None) -> JudgmentQuerySet:
    """Judgments in order of creation: an annotator's own, or all except of seats yet to be judged.

    To annotators, `match` finds nothing of a queue that hides from them which match it is.
    """
    filters = Q()
    if queue is not None:
        filters &= Q(queue=queue)
    if match is not None:
        filters &= Q(match=match)
        if not caller(request).is_researcher:
            filters &= Q(target=None) | Q(queue__shows_hidden=True)
    return _visible(request).filter(filters)


@router.get("/targets", response=list[TargetOut])
@paginate(LimitOffsetPagination)
def list_targets(request: HttpRequest, queue: int | None = None) -> TargetQuerySet:
    """The seats that are assigned to the caller and not judged yet, in the order of the queues."""
    user = caller(request)
    if not user.is_annotator:
        raise Http404
    targets = Target.objects.open_for(user).with_games()
    return targets if queue is None else targets.filter(queue=queue)


@router.get("/queues/{pk}/agreement", response=AnalysisOut)
def agreement(request: HttpRequest, pk: int) -> dict[str, Any]:
    """How far the annotators of a queue agree. A large queue is computed by a worker: ask again until it is `ready`."""
    queue, user = _readable(request, pk), caller(request)
    shown, order = _analysis(queue, "agreement", user), _analysis(queue, "disagreement", user)
    if order["result"] is None:
        return order
    if shown["result"] is not None:
        rows = zip(order["result"]["targets"], order["result"]["scores"], strict=True)
        shown["result"]["disagreements"] = list(rows)
    return shown


@router.get("/queues/{pk}/truth", response=AnalysisOut)
def truth(request: HttpRequest, pk: int) -> dict[str, Any]:
    """The truth that a queue's judgments suggest, and how reliable its annotators are."""
    return _analysis(_readable(request, pk), "truth", caller(request))


@router.get("/queues/{pk}/calibration", response=AnalysisOut)
def calibration(request: HttpRequest, pk: int) -> dict[str, Any]:
    """Judge models and rules against the people who judged the same games."""
    return _analysis(_readable(request, pk), "calibration", caller(request))


@router.get("/queues/{pk}/decisions", response=list[JudgmentOut])
@paginate(LimitOffsetPagination)
def list_decisions(request: HttpRequest, pk: int) -> JudgmentQuerySet:
    """The decisions on targets of a queue that the caller may change, in order of creation."""
    queue = get_or_404(Queue.objects.changeable_by(caller(request)), pk=pk)
    return _visible(request).filter(queue=queue, decides=True)


@router.post("/decisions", response={201: JudgmentOut})
def decide(request: HttpRequest, data: DecisionIn) -> Status[Judgment]:
    """Decide over the judgments of a target, in a queue that the caller may change; replaces an earlier decision."""
    user, visible = caller(request), _visible(request)
    targets = Target.objects.with_games().filter(queue__in=Queue.objects.changeable_by(user).values("pk"))
    target = get_or_404(targets, pk=data.target)
    if target.pk in withheld.unrevealed(target.queue, user):
        raise Http404
    labels = None if data.labels is None else [_label(shape, target) for shape in data.labels]
    decision = decisions.decide(target=target, by=user, labels=labels, note=data.note)
    if data.gold is not None:
        decisions.set_gold(target=target, gold=data.gold)
    return Status(201, get_or_404(visible, pk=decision.pk))


def _readable(request: HttpRequest, pk: int) -> Queue:
    """A queue whose results the caller may read; 409 where they have yet to judge one of its seats."""
    user = caller(request)
    if not user.is_researcher:
        raise Http404
    queue = get_or_404(Queue.objects.visible_to(user).select_related("codebook_version__codebook"), pk=pk)
    if awaited := access.awaited_in(queue, user):
        raise HttpError(409, f"judge your remaining seats of queue {awaited.pk} first: these are judgments of others")
    return queue


def _analysis(queue: Queue, name: str, reader: User) -> dict[str, Any]:
    """An analysis, without what it says of single targets of matches whose players the reader has yet to be shown."""
    analysis = analyses.of_queue(queue, name)
    state = "ready" if analysis.current else "failed" if analysis.failed else "computing"
    result = analysis.result if analysis.current else None
    if result is not None and (hidden := withheld.unrevealed(queue, reader)):
        result = result.without(hidden)
    data = None if result is None else result.to_dict()
    return {"state": state, "done": analysis.done, "total": analysis.total, "result": data}


@router.post("", response={201: JudgmentOut})
def add_judgment(request: HttpRequest, data: JudgmentIn) -> Status[Judgment]:
    """Judge one target of a queue that is assigned to the caller; another answer replaces it until an export."""
    user, visible = caller(request), _visible(request)
    mine = Queue.objects.annotated_by(user)
    target = get_or_404(Target.everything.with_games().filter(queue__in=mine), pk=data.target)
    labels = None if data.labels is None else [_label(shape, target) for shape in data.labels]
    judgment = annotating.annotate(target=target, by=user, labels=labels, reason=data.reason)
    return Status(201, get_or_404(visible, pk=judgment.pk))


@router.get("/queues/{int:pk}/labels", response=str, auth=Key(researchers=True))
def export_labels(
    request: HttpRequest, pk: int, format: Literal["jsonl", "csv", "label-studio", "w3c"] = "jsonl"
) -> HttpResponseBase:
    """The labels of a queue as a file; 409 while the caller has yet to judge what others judged in it."""
    user = caller(request)
    queue = get_or_404(Queue.objects.visible_to(user), pk=pk)
    try:
        labels = files.labels_of(queue, format_named(format), user)
    except BadInput as error:
        raise HttpError(409, error.why) from error
    return files.download(request, labels)


def _label(shape: LabelShape, target: Target) -> LabelRecord:
    """The label that was sent; one about a seat is about that of the target, if it does not say which."""
    record = LabelRecord.from_dict(shape.dict())
    about_seat = target.codebook().type_of(record.label).about == "seat"
    return record.model_copy(update={"seat": target.seat}) if about_seat and record.seat is None else record
