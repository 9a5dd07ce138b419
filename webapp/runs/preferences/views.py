"""Storing what a person has chosen on the pages of runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, researchers
from webapp.runs.preferences import services
from webapp.runs.preferences.services import ChartChoices


@require_POST
@researchers
def charts(request: HttpRequest) -> HttpResponse:
    """Store how curves are drawn for this person (`charts`, JSON); an empty text returns to the defaults."""
    text, user = request.POST.get("charts", ""), current_user(request)
    if not text:
        services.reset(user=user, kind=ChartChoices)
        return HttpResponse(status=204)
    try:
        services.choose(user=user, choices=ChartChoices.parse(text))
    except BadInput as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)
