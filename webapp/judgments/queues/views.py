"""Pages of queues: what waits, results, retry, cancel, delete, export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from training.evaluate.intervals import ENOUGH
from training.labels.exchange import FORMATS, format_named
from webapp.accounts.models import User
from webapp.accounts.permissions import annotators, current_user, get_or_404, researchers
from webapp.arena.models import Match
from webapp.core.http import STOP_ASKING, accepted, integer, render_block, render_page, wants_fragment
from webapp.core.sorting import Order
from webapp.judgments import display
from webapp.judgments.datasets import export, files
from webapp.judgments.models import QUEUE_SORTS, Codebook, JudgeModel, Judgment, JudgmentQuerySet, Queue, Target
from webapp.judgments.naming import Names
from webapp.judgments.queues import managing, progress
from webapp.judgments.queues import services as queues
from webapp.judgments.queues.forms import QueueForm
from webapp.judgments.queues.progress import Tally, TargetTally
from webapp.judgments.queues.selection import Selection
from webapp.judgments.rating.views import codebook_after
from webapp.judgments.results import analyses, withheld
from webapp.scenarios.forms import DatasetNameForm

PAGE = 50
JUDGMENTS = 20
"""Judgments per page of a queue."""
COLUMNS = {
    "name": "Queue", "codebook": "Codebook", "by": "By", "scored": "Scored", "not": "Could not score",
    "left": "Pending", "seats": "Seats", "owner": "Owner", "age": "Created",
}  # fmt: skip


@require_GET
@annotators
def queue_list(request: HttpRequest) -> HttpResponse:
    """The user's assignments; for researchers all queues, filtered and sorted by the query string."""
    user = current_user(request)
    words, by = request.GET.get("q", "")[:200], request.GET.get("by", "")
    unfinished, order = "left" in request.GET, Order.requested(request, "age")
    queues = Queue.objects.visible_to(user).matching(text=words, by=by, left=unfinished)
    paginator = Paginator(order.apply(queues.listed(), QUEUE_SORTS, "age"), PAGE)
    context = {
        "page": paginator.get_page(integer(request, "page", 1, low=1)),
        "words": words,
        "by": by,
        "left": unfinished,
        "order": order,
        "columns": order.columns(COLUMNS, QUEUE_SORTS, {"scored", "not", "left", "seats"}),
        "filtered": bool(words or by or unfinished),
        "mine": Queue.objects.assigned_to(user),
        "codebooks": Codebook.objects.with_newest().order_by("name"),
        "judges": JudgeModel.objects.select_related("remote").annotate(asked=Count("queues")).order_by("name"),
    }
    return render_page(request, "judgments/list.html", context, "results")


@require_http_methods(["GET", "POST"])
@researchers
def queue_new(request: HttpRequest) -> HttpResponseBase:
    user = current_user(request)
    names = ("match", "run", "step", "version", "annotators", *QueueForm.FILTER)
    requested = {name: request.GET.getlist(name) for name in names if name in request.GET}
    initial = {name: value if name in {"match", "annotators"} else value[0] for name, value in requested.items()}
    form = QueueForm(user, request.POST or None, initial={**_suggested(user, initial), **initial})
    if request.method == "POST" and form.is_valid():
        if "preview" in request.POST:
            return render(request, "judgments/queue_new.html", {"form": form, "count": managing.count(form)})
        cleaned = form.cleaned_data
        try:
            queue = queues.create_queue(
                name=cleaned["name"],
                owner=user,
                codebook_version=cleaned["codebook_version"],
                judge=cleaned["judge"],
                annotators=cleaned["annotators"],
                how=form.how(),
                **form.games(),
            )
        except BadInput as error:
            form.add_error(error.where if error.where in form.fields else None, error.why)
        else:
            if queue.excluded:
                messages.warning(request, "Some seats were excluded; the queue's page lists them.")
            return redirect("judgments:queue", queue.pk)
    return render(request, "judgments/queue_new.html", {"form": form}, status=400 if form.errors else 200)


def _suggested(user: User, initial: Mapping[str, Any]) -> dict[str, Any]:
    """A name and the codebook for the match that a link names."""
    keys = [key for key in initial.get("match", ()) if key.isascii() and key.isdigit() and len(key) <= 18]
    match = Match.objects.judgeable_by(user).filter(pk__in=keys[:1]).first()
    return {"name": match.title[:120], "codebook_version": codebook_after(match)} if match else {}


@require_GET
@researchers
def queue_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A queue. A polling page gets the judge model's progress: 204 if unchanged, and the whole page at the end. One
    that waits for the results asks with `?results=`.
    """
    queue = get_or_404(Queue.objects.visible_to(current_user(request)).described(), pk=pk)
    targets = progress.tally_targets(queue)
    _set_counts(queue, targets)
    if not wants_fragment(request):
        return render(request, "judgments/queue.html", _queue_context(request, queue, targets))
    if "results" in request.GET:
        counted = progress.tally(queue, targets)
        context = _results_context(queue, current_user(request), counted)
        return render(request, "judgments/queue_results.html", context)
    waiting = queue.targets_left  # type: ignore[attr-defined]
    if waiting and request.GET.get("left") == str(waiting):
        return HttpResponse(status=204)
    if waiting:
        return render_block(request, "judgments/queue.html", "progress", {"queue": queue})
    context = {**_queue_context(request, queue, targets), "swap": True}
    return render_block(request, "judgments/queue.html", "progress", context, STOP_ASKING)


def _set_counts(queue: Queue, targets: TargetTally) -> None:
    """Set the counts of `QueueQuerySet.listed` on a queue, without withdrawn games."""
    states = {"scored": Target.State.SCORED, "unscored": Target.State.UNSCORED, "left": Target.State.PENDING}
    for name, state in states.items():
        setattr(queue, f"targets_{name}", targets.by_state.get(state, 0))
    queue.targets_all = sum(targets.by_state.values())  # type: ignore[attr-defined]


def _queue_context(request: HttpRequest, queue: Queue, targets: TargetTally) -> dict[str, Any]:
    """The context of a queue's page, as far as this user may read it."""
    user = current_user(request)
    counted = progress.tally(queue, targets)
    context = _results_context(queue, user, counted)
    analysis = context["analysis"]
    scored = Judgment.objects.none() if analysis is None else withheld.readable(queue, user, analysis.withheld)
    whole = analysis is not None and not analysis.withheld
    keys: Any = FromBothEnds(scored, counted.scored if whole else scored.count())
    pages = Paginator(keys, JUDGMENTS)
    page = pages.get_page(integer(request, "page", 1, low=1))
    rows = Judgment.objects.filter(pk__in=list(page)).of_queue(queue)
    people = _people(queue, user, targets, counted)
    names = Names(queue.pk, {each.user.pk: each.number for each in people.get("people", ())})
    return {
        **context,
        "waiting": queue.targets.open_for(user).count() if context["left"] else 0,  # what is open is left, too
        "readable": context["readable"] | _readable(user, (row.match_id for row in rows)),
        "page": page,
        "judgments": display.shown_judgments(rows, names),
        "formats": FORMATS.values(),
        **people,
        "export_form": DatasetNameForm(initial={"name": f"judged-{queue.pk}"}),
    }


class FromBothEnds:
    """The keys of sorted rows, whose later half is read from the end: a page is read without the pages before it."""

    def __init__(self, rows: JudgmentQuerySet, count: int) -> None:
        self._rows, self._count = rows, count

    def count(self) -> int:
        """Return how many there are."""
        return self._count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: slice) -> list[int]:
        start, stop = place.start, min(place.stop, self._count)
        keys = self._rows.values_list("pk", flat=True)
        if start + stop <= self._count:
            return list(keys[start:stop])
        return list(keys.reverse()[self._count - stop : self._count - start])[::-1]


def _results_context(queue: Queue, user: User, counted: Tally) -> dict[str, Any]:
    """The context of the results, as far as this user may read them."""
    remaining = queue.targets.awaited_by(user).count()
    state = None if remaining else analyses.state_of_authors(queue, counted.state)
    shown = () if remaining or not queue.targets_unscored else _unscored(queue, user)  # type: ignore[attr-defined]
    return {
        "queue": queue,
        "left": remaining,
        "analysis": None if remaining else analyses.of_queue(queue, "summary", user, state=state),
        "decided": 0 if remaining else counted.decided,
        "enough": ENOUGH,
        "unscored": shown,
        "readable": _readable(user, (target.match_id for target in shown)),
        "may_change": user.may_change(queue.owner_id),
    }


def _unscored(queue: Queue, user: User) -> QuerySet[Target]:
    """Targets that could not be scored, with what this person may read of why."""
    targets = queue.targets.filter(state=Target.State.UNSCORED).select_related("conversation__scenario")
    return targets.prefetch_related(Prefetch("judgments", Judgment.objects.readable_by(user)))[:50]


def _readable(user: User, matches: Iterable[int | None]) -> set[int]:
    """Those of the matches that this person may see."""
    pks = {match for match in matches if match is not None}
    return set(Match.objects.visible_to(user).filter(pk__in=pks).values_list("pk", flat=True)) if pks else set()


def _people(queue: Queue, user: User, targets: TargetTally, counted: Tally) -> dict[str, Any]:
    """Progress and annotators of a people's queue; names and what can be changed for those who may change it."""
    if queue.judge is not None or queue.rule:
        return {}
    people = progress.annotators(queue, targets, counted)
    batches = progress.batches(queue, sum(row.present for row in people), targets, counted)
    context: dict[str, Any] = {"batches": batches, "people": people}
    context |= {
        "gold_missing": queue.qualification_items - targets.gold,
        "next_batch": any(not b.open for b in context["batches"]),
    }
    if user.may_change(queue.owner_id):
        context |= {"addable": managing.addable(queue), "invitations": managing.open_invitations(queue)}
        context["filter"] = Selection.from_dict(queue.selection).words
    return context


@require_POST
@researchers
def queue_retry(request: HttpRequest, pk: int) -> HttpResponseBase:
    queue = get_or_404(Queue.objects.changeable_by(current_user(request)), pk=pk)
    count = queues.retry(queue=queue)
    messages.info(request, f"{count} seats are judged again." if count else "No seat could be judged again.")
    return redirect("judgments:queue", queue.pk)


@require_POST
@researchers
def queue_cancel(request: HttpRequest, pk: int) -> HttpResponseBase:
    queue = get_or_404(Queue.objects.changeable_by(current_user(request)), pk=pk)
    count = queues.cancel(queue=queue)
    messages.info(request, f"Pending seats cancelled: {count}." if count else "No seat was pending.")
    return redirect("judgments:queue", queue.pk)


@require_POST
@researchers
def queue_delete(request: HttpRequest, pk: int) -> HttpResponseBase:
    queue = get_or_404(Queue.objects.changeable_by(current_user(request)), pk=pk)
    if not accepted(request, partial(queues.delete_queue, queue=queue)):
        return redirect("judgments:queue", pk)
    messages.success(request, f"{queue.name} was deleted.")
    return redirect("judgments:list")


@require_POST
@researchers
def queue_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    user = current_user(request)
    queue = get_or_404(Queue.objects.visible_to(user), pk=pk)
    form = DatasetNameForm(request.POST)
    if form.is_valid():
        try:
            version, left_out = export.store(queue=queue, name=form.cleaned_data["name"], by=user)
        except BadInput as error:
            form.add_error("name", error.why)
        else:
            messages.success(request, f"Stored as {version}.")
            if left_out:
                messages.warning(request, f"{len(left_out)} games were excluded: {'; '.join(left_out[:5])}.")
            return redirect("scenarios:version", version.dataset.name, version.number)
    return render(request, "judgments/export.html", {"form": form, "queue": queue}, status=400)


@require_GET
@researchers
def queue_labels(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The labels as a file in the format that `?format=` names."""
    user = current_user(request)
    queue = get_or_404(Queue.objects.visible_to(user), pk=pk)
    try:
        labels = files.labels_of(queue, format_named(request.GET.get("format", "")), user)
    except BadInput as error:
        messages.error(request, f"No file was made: {error.why}.")
        return redirect("judgments:queue", queue.pk)
    return files.download(request, labels)
