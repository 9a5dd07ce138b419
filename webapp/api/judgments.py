"""Judgments over the API: read judgments, list the assigned seats, add judgments."""

from __future__ import annotations

from django.db.models import Q
from django.http import Http404, HttpRequest
from ninja import Router, Status
from ninja.pagination import LimitOffsetPagination, paginate

from training.records import Label as LabelRecord
from webapp.accounts.permissions import get_or_404
from webapp.api.access import caller
from webapp.api.shapes import JudgmentIn, JudgmentOut, LabelShape, TargetOut
from webapp.judgments.annotating import services as annotating
from webapp.judgments.models import Judgment, JudgmentQuerySet, Target, TargetQuerySet

router = Router(tags=["judgments"])


def _visible(request: HttpRequest) -> JudgmentQuerySet:
    user = caller(request)
    if not user.is_annotator:
        raise Http404
    return Judgment.objects.readable_by(user).with_authors().select_related("target", "judge__remote")


@router.get("", response=list[JudgmentOut])
@paginate(LimitOffsetPagination)
def list_judgments(request: HttpRequest, queue: int | None = None, match: int | None = None) -> JudgmentQuerySet:
    """Judgments in order of creation: an annotator's own, or all except of seats yet to be judged."""
    filters = Q()
    if queue is not None:
        filters &= Q(target__queue=queue)
    if match is not None:
        filters &= Q(match=match)
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


@router.post("", response={201: JudgmentOut})
def add_judgment(request: HttpRequest, data: JudgmentIn) -> Status[Judgment]:
    """Judge one target of a queue that is assigned to the caller; another answer replaces it until an export."""
    user, visible = caller(request), _visible(request)
    target = get_or_404(Target.objects.with_games().filter(queue__annotators=user), pk=data.target)
    labels = None if data.labels is None else [_label(shape, target) for shape in data.labels]
    judgment = annotating.annotate(target=target, by=user, labels=labels, reason=data.reason)
    return Status(201, get_or_404(visible, pk=judgment.pk))


def _label(shape: LabelShape, target: Target) -> LabelRecord:
    """The label that was sent; one about a seat is about that of the target, if it does not say which."""
    record = LabelRecord.from_dict(shape.dict())
    about_seat = target.codebook().type_of(record.label).about == "seat"
    return record.model_copy(update={"seat": target.seat}) if about_seat and record.seat is None else record
