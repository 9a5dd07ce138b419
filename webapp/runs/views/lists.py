"""The table of runs with filters, bulk actions, and the comparison of selected runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, researchers
from webapp.core.http import integer, render_page, wants_fragment
from webapp.core.sorting import Order
from webapp.runs import services
from webapp.runs.models import Run
from webapp.runs.organising import columns
from webapp.runs.organising import services as organising
from webapp.runs.querysets import RunQuerySet
from webapp.runs.summaries import comparing, suite_charts
from webapp.runs.views.selecting import MOST_COMPARED, MOST_SUITES, selected

PAGE = 50
FILTERS = ("kind", "state", "method", "game", "base", "group")
ARCHIVE = [("only", "archived"), ("all", "both")]
DONE = {
    "stop": "asked to stop",
    "delete": "deleted",
    "archive": "archived: filter by Archive to see them",
    "restore": "restored",
    "tag": "tagged",
    "group": "put into the group",
    "pin": "pinned",
    "unpin": "no longer pinned",
}
"""What has happened after each action on selected runs."""
REVERSE = {"archive": "restore", "restore": "archive", "pin": "unpin", "unpin": "pin"}
"""The action that undoes another; the next list offers it for the runs that were changed."""
UNDO = "undo runs"
"""Where the session keeps that offer."""


def filtered(user: User, query: QueryDict) -> RunQuerySet:
    """The runs that a query string asks for."""
    filters = {name: query.get(name, "")[:200] for name in FILTERS}
    runs = Run.objects.visible_to(user).without_servers().matching(text=query.get("q", "")[:200], **filters)
    runs = runs.tagged(query.get("tag", "")[:200]).in_archive(query.get("archive", ""))
    return runs.filter(owner=user) if query.get("owner") == "me" else runs


def in_order(request: HttpRequest, shown: list[str]) -> RunQuerySet:
    """The runs that the request asks for, in its order, pinned ones first, with what their row needs."""
    user, order = current_user(request), Order.requested(request, "age")
    runs = columns.in_order(filtered(user, request.GET).listed(), order, shown)
    return columns.with_fields(runs, shown).pinned_first(user)


@require_GET
@researchers
def run_list(request: HttpRequest) -> HttpResponse:
    """All runs, filtered and sorted by the query string."""
    shown, order = columns.of(current_user(request)), Order.requested(request, "age")
    page = Paginator(in_order(request, shown), PAGE).get_page(integer(request, "page", 1, low=1))
    names = (*FILTERS, "q", "tag", "archive", "owner")
    numbers = [name for name in shown if name in columns.NUMBERS or name.startswith("metric:")]
    titles = {name: columns.title(name) for name in shown}
    context = {
        "page": page,
        "rows": list(columns.values(list(page.object_list), shown)),
        "chosen": {name: request.GET.get(name, "")[:200] for name in names},
        "order": order,
        "columns": order.columns(titles, columns.sorts(shown), numbers),
        "options": _options(),
        "filtered": any(request.GET.get(name) for name in names),
        "archive": ARCHIVE,
        "undo": None if wants_fragment(request) else request.session.pop(UNDO, None),
    }
    return render_page(request, "runs/list.html", context, "results")


def _options() -> dict[str, Sequence[str | tuple[str, str]]]:
    """The options of each filter: all states and kinds (with titles), else the values that occur, in one query."""
    occurring: dict[str, set[str]] = {name: set() for name in ("method", "game", "base", "group")}
    tags: set[str] = set()
    rows = Run.objects.without_servers().order_by().values_list(*occurring, "tags").distinct()
    for *values, tagged in rows:
        for name, value in zip(occurring, values, strict=True):
            occurring[name] |= {value} - {""}
        tags.update(tagged)
    kinds = [(kind.value, kind.label) for kind in Run.Kind if kind != Run.Kind.SERVE]
    listed = {name: sorted(values) for name, values in occurring.items()}
    return {"kind": kinds, "state": list(Run.State.values), "tag": sorted(tags), **listed}


def _actions(user: User, data: QueryDict) -> dict[str, Callable[..., Any]]:
    """What can be done to a selected run."""
    tag, group = data.get("tag", "")[:200], data.get("group", "")[:200]
    return {
        "stop": services.stop_run,
        "delete": services.delete_run,
        "archive": partial(organising.archive, archived=True),
        "restore": partial(organising.archive, archived=False),
        "tag": partial(organising.add_tag, tag=tag),
        "group": partial(organising.set_group, group=group),
        "pin": partial(organising.pin, user=user, pinned=True),
        "unpin": partial(organising.pin, user=user, pinned=False),
    }


@require_POST
@researchers
def bulk(request: HttpRequest) -> HttpResponse:
    """Compare, stop, describe, pin, archive or delete the selected runs; failures are reported individually."""
    user, action = current_user(request), request.POST.get("action", "")
    back = redirect(request.POST.get("back", "") if _own_list(request.POST.get("back", "")) else "runs:list")
    if action == "compare":
        runs = selected(Run.objects.visible_to(user).without_servers(), request.POST)
        query = "&".join(f"run={run.pk}" for run in runs)
        return redirect(f"{reverse('runs:compare')}?{query}")
    work = _actions(user, request.POST).get(action)
    if work is None:
        raise Http404
    allowed = Run.objects.visible_to(user) if action in {"pin", "unpin"} else Run.objects.changeable_by(user)
    runs = selected(allowed.without_servers(), request.POST)
    done, changed = 0, []
    for run in runs:
        try:
            if work(run=run):
                changed.append(run.pk)
            done += 1
        except BadInput as error:
            messages.error(request, str(error))
    skipped = len(set(request.POST.getlist("run"))) - len(runs)
    if skipped:
        messages.warning(request, f"{skipped} not changed: they belong to somebody else.")
    if changed and action in REVERSE:  # what was so before stays so when it is undone
        request.session[UNDO] = {"text": f"{len(changed)} {DONE[action]}.", "action": REVERSE[action], "runs": changed}
    elif done:
        messages.success(request, f"{done} {DONE[action]}.")
    return back


def _own_list(address: str) -> bool:
    return address.startswith(reverse("runs:list") + "?")


@require_GET
@researchers
def compare(request: HttpRequest) -> HttpResponse:
    """Two or more runs side by side: where their configurations differ, curves, last values."""
    experiments = Run.objects.visible_to(current_user(request)).without_servers()
    visible = experiments.select_related("start_checkpoint__run__start_checkpoint__run")
    runs = selected(visible, request.GET)
    most = MOST_SUITES if runs and all(run.kind == Run.Kind.SUITE for run in runs) else MOST_COMPARED
    if not 2 <= len(runs) <= most:
        messages.error(request, f"Select two to {most} runs to compare, not {len(runs)}.")
        return redirect("runs:list")
    context = {**comparing.comparison(runs, current_user(request)), "suites": suite_charts.side_by_side(runs)}
    return render(request, "runs/compare.html", context)
