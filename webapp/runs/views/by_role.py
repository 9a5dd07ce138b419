"""A run's page by role: what messages change in beliefs, the crew over iterations, and suites of checkpoints."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from training.evaluate.intervals import CAUTION
from webapp.accounts.permissions import current_user, researchers
from webapp.runs.models import Run
from webapp.runs.querysets import OVER
from webapp.runs.summaries import by_role as summaries
from webapp.runs.summaries import curves, suite_charts
from webapp.runs.views.run import page, visible


@require_GET
@researchers
def by_role(request: HttpRequest, run_id: int) -> HttpResponse:
    """All reports; each says what to set where it has nothing to show."""
    run = visible(request, run_id)
    heard, iterations = summaries.persuasion(run), summaries.exploitability(run)
    names = dict.fromkeys(row.metric for row in heard)
    data = {
        "live": run.state not in OVER,
        "fixed": True,
        "groups": curves.groups(names, "What messages of each role change, by step"),
        "runs": [{"name": run.name, "url": reverse("runs:metrics", args=[run.pk])}],
    }
    measured = suite_charts.of_checkpoints(run, Run.objects.visible_to(current_user(request)))
    context = {
        "suites": suite_charts.side_by_side(measured),
        "measured": measured,
        "newest_checkpoint": run.checkpoints.order_by("-step").first(),
        "heard": heard,
        "iterations": iterations,
        "curves": data if names and run.kind == run.Kind.TRAIN else None,
        "newest_games": summaries.NEWEST,
        "few": CAUTION if any(row.change.few for row in heard) else "",
    }
    return page(request, run, "by_role", context)
