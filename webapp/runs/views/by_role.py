"""A run's page by role: the crew's win rate over iterations, and what messages change in beliefs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from training.evaluate.intervals import CAUTION
from webapp.accounts.permissions import researchers
from webapp.runs.querysets import OVER
from webapp.runs.reports import by_role as reports
from webapp.runs.reports import curves
from webapp.runs.views.run import page, visible


@require_GET
@researchers
def by_role(request: HttpRequest, run_id: int) -> HttpResponse:
    """Both reports; each says what to set where it has nothing to show."""
    run = visible(request, run_id)
    heard, iterations = reports.persuasion(run), reports.exploitability(run)
    names = dict.fromkeys(row.metric for row in heard)
    data = {
        "live": run.state not in OVER,
        "fixed": True,
        "groups": curves.groups(names, "What their messages change, over the steps"),
        "runs": [{"name": run.name, "url": reverse("runs:metrics", args=[run.pk])}],
    }
    context = {
        "heard": heard,
        "iterations": iterations,
        "curves": data if names and run.kind == run.Kind.TRAIN else None,
        "newest": reports.NEWEST,
        "few": CAUTION if any(row.change.few for row in heard) else "",
    }
    return page(request, run, "by_role", context)
