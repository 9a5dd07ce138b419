"""Queues over the API, with the rights of the pages: list, make, read, targets, assignments, pause, resume, close."""

from __future__ import annotations

from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from ninja import Router, Status
from ninja.pagination import LimitOffsetPagination, paginate

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import get_or_404
from webapp.api.access import Key, caller
from webapp.api.shapes import AssignmentOut, QueueIn, QueueOut, QueueTargetOut
from webapp.judgments.models import Assignment, CodebookVersion, JudgeModel, Queue, QueueQuerySet, TargetQuerySet
from webapp.judgments.queues import services as queues
from webapp.judgments.queues.forms import QueueForm
from webapp.judgments.queues.sharing import addable
from webapp.scenarios.models import DatasetVersion

router = Router(tags=["queues"], auth=Key(researchers=True))
CHANGES = {"pause": queues.pause, "resume": queues.resume, "close": queues.close}


@router.get("", response=list[QueueOut])
@paginate(LimitOffsetPagination)
def list_queues(request: HttpRequest, q: str = "", state: str = "") -> QueueQuerySet:
    """Queues whose name or owner is `q`, newest first."""
    rows = Queue.objects.visible_to(caller(request)).matching(text=q).listed().order_by("-pk")
    return rows.filter(state=state) if state else rows


@router.post("", response={201: QueueOut})
def make_queue(request: HttpRequest, data: QueueIn) -> Status[Queue]:
    """Make a queue of the games that the filter selects; the caller owns it."""
    user = caller(request)
    form = QueueForm(user, _form_data(data))
    if not form.is_valid():
        where, errors = next(iter(form.errors.items()))
        raise BadInput(str(errors[0]).rstrip("."), where)
    queue = queues.create_queue(
        name=form.cleaned_data["name"], owner=user, codebook_version=form.cleaned_data["codebook_version"],
        judge=form.cleaned_data["judge"], annotators=form.cleaned_data["annotators"], how=form.how(), **form.games(),
    )  # fmt: skip
    return Status(201, get_or_404(Queue.objects.listed(), pk=queue.pk))


def _form_data(data: QueueIn) -> QueryDict:
    """What the page's form would send; names become keys. `BadInput` for a name that is not there."""
    codebooks = CodebookVersion.objects.filter(codebook__name=data.codebook).order_by("-number")
    if data.codebook_version is not None:
        codebooks = codebooks.filter(number=data.codebook_version)
    versions = DatasetVersion.objects.filter(dataset__name=data.dataset).order_by("-number")
    if data.dataset_version is not None:
        versions = versions.filter(number=data.dataset_version)
    simple = (
        "name", "every_match", "run", "step", "most", "overlap", "max_overlap", "assignment", "reserve_minutes",
        "order", "batch_size", "qualification_items", "qualification_threshold", "gold_feedback", "shows_hidden",
        "shows_suggestions",
    )  # fmt: skip
    values = {name: getattr(data, name) for name in simple}
    if unknown := set(data.selection) - set(QueueForm.FILTER):
        raise BadInput("the filter has no such field", f"selection.{min(unknown)}")
    values |= data.selection
    values["codebook_version"] = _key(codebooks, "codebook")
    if data.dataset is not None:
        values["version"] = _key(versions, "dataset")
    if data.judge is not None:
        values["judge"] = _key(JudgeModel.objects.filter(name=data.judge), "judge")
    sent = QueryDict(mutable=True)
    sent.update({name: value for name, value in values.items() if value not in (None, False)})
    sent.setlist("match", [str(pk) for pk in data.matches])
    people = addable()  # of no other account is it told whether it is there
    sent.setlist("annotators", [str(_key(people.filter(username=name), "annotators")) for name in data.annotators])
    return sent


def _key(rows: QuerySet[CodebookVersion | DatasetVersion | JudgeModel | User], where: str) -> int:
    pk: int | None = rows.values_list("pk", flat=True).first()
    if pk is None:
        raise BadInput("there is none of this name", where)
    return pk


@router.get("/{int:pk}", response=QueueOut)
def get_queue(request: HttpRequest, pk: int) -> Queue:
    """A queue with the counts of its targets."""
    return get_or_404(Queue.objects.visible_to(caller(request)).listed(), pk=pk)


@router.get("/{int:pk}/targets", response=list[QueueTargetOut])
@paginate(LimitOffsetPagination)
def list_queue_targets(request: HttpRequest, pk: int) -> TargetQuerySet:
    """All targets of a queue, in its order; what is gold is told to its owner only."""
    queue = get_or_404(Queue.objects.changeable_by(caller(request)), pk=pk)
    return queue.targets.order_by("position")


@router.get("/{int:pk}/assignments", response=list[AssignmentOut])
@paginate(LimitOffsetPagination)
def list_assignments(request: HttpRequest, pk: int) -> QuerySet[Assignment]:
    """What is shared out, reserved or put aside, for the queue's owner: annotators by name."""
    queue = get_or_404(Queue.objects.changeable_by(caller(request)), pk=pk)
    rows = Assignment.objects.filter(target__queue=queue).select_related("annotator")
    return rows.order_by("target__position", "pk")


@router.post("/{int:pk}/{to}", response=QueueOut)
def change_queue(request: HttpRequest, pk: int, to: Literal["pause", "resume", "close"]) -> Queue:
    """Pause a queue, resume it, or close it for good."""
    queue = get_or_404(Queue.objects.changeable_by(caller(request)), pk=pk)
    CHANGES[to](queue=queue)
    return get_or_404(Queue.objects.listed(), pk=pk)
