"""The analysis of a finished match: a part of the pages of its result and its replay, and a page of its own."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from training.records import ALL
from webapp.accounts.permissions import current_user, everyone
from webapp.arena import access
from webapp.arena.pages.views import visible_match
from webapp.arena.play import analyses
from webapp.core.http import render_page
from webapp.core.stage import Stage


@require_GET
@everyone
def analysis(request: HttpRequest, match_id: int) -> HttpResponse:
    """What is known of the moves of a finished match. While a worker computes it, the page polls."""
    match = visible_match(request, match_id)
    if not access.sees_analysis(match, current_user(request)):
        raise Http404
    zones = analyses.of_match(match)
    context = {
        "match": match,
        "zones": zones,
        "waiting": zones is None and analyses.request(match),
        "stage": Stage(match.scenario["seats"], ALL, replay=reverse("arena:replay", args=[match.pk])),
    }
    return render_page(request, "arena/analysis.html", context, block="analysis")
