"""Pages of a queue's results: how far annotators agree."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import render_page
from webapp.judgments.models import Queue
from webapp.judgments.results import access, analyses

LEVELS = {
    "nominal": "nominal: values are equal or not",
    "ordinal": "ordinal: by how many values lie between two",
    "interval": "interval: by the squared difference",
    "sets": "MASI: by what two sets share",
}
"""What the level of a label type means."""


def queue_of(request: HttpRequest, pk: int) -> tuple[Queue, User, dict[str, Any]]:
    """Return a queue whose results this person may see, and the context that its pages share; else 404."""
    user = current_user(request)
    queues = Queue.objects.visible_to(user).select_related("codebook_version__codebook", "owner", "judge")
    queue = get_or_404(queues, pk=pk)
    context = {
        "queue": queue,
        "awaited": access.awaited_in(queue, user),
        "may_change": user.may_change(queue.owner_id),
    }
    return queue, user, context


def names_of(annotators: tuple[int, ...], *, shown: bool) -> dict[int, str]:
    """Return the names of annotators by their number, where the reader may change the queue."""
    accounts = User.objects.in_bulk(annotators) if shown else {}
    return {number: accounts[pk].username for number, pk in enumerate(annotators, 1) if pk in accounts}


@require_GET
@researchers
def agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """How far the annotators of a queue agree; a page that waits for it asks again."""
    queue, _, context = queue_of(request, pk)
    context |= {"tab": "agreement", "levels": LEVELS}
    if context["awaited"] is None:
        analysis = analyses.of_queue(queue, "agreement")
        names = names_of(analysis.result.annotators, shown=context["may_change"]) if analysis.result else {}
        context |= {"analysis": analysis, "names": names}
    return render_page(request, "judgments/results/agreement.html", context, "analysis")
