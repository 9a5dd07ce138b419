"""The table of runs with filters, bulk actions, and the comparison of selected runs."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, researchers
from webapp.core.http import integer, render_page
from webapp.core.sorting import Order
from webapp.runs import services
from webapp.runs.models import Run
from webapp.runs.querysets import SORTS
from webapp.runs.reports import comparing, suite_charts
from webapp.runs.views.selecting import MOST_COMPARED, MOST_SUITES, selected

PAGE = 50
FILTERS = ("kind", "state", "method", "game", "base")
TITLES = {
    "state": "State",
    "name": "Name",
    "kind": "Kind",
    "method": "Method",
    "game": "Game",
    "base": "Base",
    "progress": "Step",
    "metric": "Key metric",
    "trend": "Trend",
    "age": "Age",
}


@require_GET
@researchers
def run_list(request: HttpRequest) -> HttpResponse:
    """All runs, filtered and sorted by the query string."""
    user = current_user(request)
    filters = {name: request.GET.get(name, "")[:200] for name in FILTERS}
    words, order = request.GET.get("q", "")[:200], Order.requested(request, "age")
    runs = Run.objects.visible_to(user).experiments().matching(text=words, **filters)
    if request.GET.get("owner") == "me":
        runs = runs.filter(owner=user)
    paginator = Paginator(order.apply(runs.listed(), SORTS, "age"), PAGE)
    context = {
        "page": paginator.get_page(integer(request, "page", 1, low=1)),
        "chosen": filters,
        "words": words,
        "mine": request.GET.get("owner") == "me",
        "order": order,
        "columns": order.columns(TITLES, SORTS, ("progress", "metric")),
        "options": _options(),
        "filtered": bool(words or any(filters.values()) or request.GET.get("owner")),
    }
    return render_page(request, "runs/list.html", context, "results")


def _options() -> dict[str, list[str]]:
    """The options of each filter: all states and kinds, else the values that occur."""
    runs = Run.objects.experiments()
    occurring = {
        name: list(runs.exclude(**{name: ""}).order_by(name).values_list(name, flat=True).distinct())
        for name in ("method", "game", "base")
    }
    kinds = [kind for kind in Run.Kind.values if kind != Run.Kind.SERVE]
    return {"kind": kinds, "state": list(Run.State.values), **occurring}


@require_POST
@researchers
def bulk(request: HttpRequest) -> HttpResponse:
    """Compare, stop or delete the selected runs; failures are reported individually."""
    user, action = current_user(request), request.POST.get("action", "")
    back = redirect(request.POST.get("back", "") if _own_list(request.POST.get("back", "")) else "runs:list")
    if action == "compare":
        runs = selected(Run.objects.visible_to(user).experiments(), request.POST)
        query = "&".join(f"run={run.pk}" for run in runs)
        return redirect(f"{reverse('runs:compare')}?{query}")
    if action not in {"stop", "delete"}:
        raise Http404
    runs = selected(Run.objects.changeable_by(user).experiments(), request.POST)
    done = 0
    for run in runs:
        try:
            services.stop_run(run=run) if action == "stop" else services.delete_run(run=run)
            done += 1
        except BadInput as error:
            messages.error(request, str(error))
    skipped = len(set(request.POST.getlist("run"))) - len(runs)
    if skipped:
        messages.warning(request, f"{skipped} not changed: they belong to somebody else.")
    if done:
        messages.success(request, f"{done} {'asked to stop' if action == 'stop' else 'deleted'}.")
    return back


def _own_list(address: str) -> bool:
    return address.startswith(reverse("runs:list") + "?")


@require_GET
@researchers
def compare(request: HttpRequest) -> HttpResponse:
    """Two or more runs side by side: curves, last values, and where their configurations differ."""
    experiments = Run.objects.visible_to(current_user(request)).experiments()
    visible = experiments.select_related("start_checkpoint__run__start_checkpoint__run")
    runs = selected(visible, request.GET)
    most = MOST_SUITES if runs and all(run.kind == Run.Kind.SUITE for run in runs) else MOST_COMPARED
    if not 2 <= len(runs) <= most:
        messages.error(request, f"Select two to {most} runs to compare, not {len(runs)}.")
        return redirect("runs:list")
    context = {**comparing.comparison(runs, current_user(request)), "suites": suite_charts.side_by_side(runs)}
    return render(request, "runs/compare.html", context)
