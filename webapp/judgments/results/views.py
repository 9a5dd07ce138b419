"""Pages of a queue's results: how far annotators agree, the aggregated truth, and judges against people."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput
from training.labels.truth import METHODS
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.arena.models import Match
from webapp.core.http import render_page
from webapp.judgments.datasets import export
from webapp.judgments.models import Queue, Target
from webapp.judgments.results import access, analyses, withheld
from webapp.scenarios.forms import DatasetNameForm

LEVELS = {
    "nominal": "nominal: values are equal or not",
    "ordinal": "ordinal: by the number of values between two",
    "interval": "interval: by the squared difference",
    "sets": "sets: MASI distance",
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


@require_GET
@researchers
def agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """How far the annotators of a queue agree; a page that waits for it asks again."""
    queue, _, context = queue_of(request, pk)
    context |= {"tab": "agreement", "levels": LEVELS}
    if context["awaited"] is None:
        context["analysis"] = analyses.of_queue(queue, "agreement")
    return render_page(request, "judgments/results/agreement.html", context, "analysis")


@require_GET
@researchers
def truth(request: HttpRequest, pk: int) -> HttpResponse:
    """The truth by decisions and by each method, how reliable annotators are, and where the methods differ."""
    queue, user, context = queue_of(request, pk)
    context |= {"tab": "truth", "methods": {name: method.title for name, method in METHODS.items()}}
    if context["awaited"] is None:
        analysis = analyses.of_queue(queue, "truth")
        rows = [row for label in analysis.result.labels for row in label.differing] if analysis.result else []
        context |= {"analysis": analysis, **_linked(queue, user, {row.target for row in rows})}
    return render_page(request, "judgments/results/truth.html", context, "analysis")


@require_GET
@researchers
def judges(request: HttpRequest, pk: int) -> HttpResponse:
    """Judge models and rules against the people who judged the same games."""
    queue, user, context = queue_of(request, pk)
    context |= {"tab": "judges", "export_form": DatasetNameForm(initial={"name": f"disagreements-{queue.pk}"})}
    if context["awaited"] is None:
        analysis = analyses.of_queue(queue, "calibration")
        rows = analysis.result.judges if analysis.result else ()
        missed = {miss.target for judge in rows for label in judge.labels for miss in label.misses}
        context |= {"analysis": analysis, **_linked(queue, user, missed)}
    return render_page(request, "judgments/results/judges.html", context, "analysis")


@require_POST
@researchers
def export_disagreements(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Store the games on which a judge and people disagree as a dataset version, with the people's labels."""
    queue, user, context = queue_of(request, pk)
    form, analysis = DatasetNameForm(request.POST), None
    if context["awaited"] is None and not (queue.judge or queue.rule):
        analysis = analyses.of_queue(queue, "calibration")
    rows = analysis.result.judges if analysis is not None and analysis.current else ()
    judge = next((row for row in rows if row.key == request.POST.get("judge", "")), None)
    if judge is None or not form.is_valid():
        messages.error(request, "Nothing was exported: reload the page, and choose a judge and a name.")
        return redirect("judgments:judges", pk)
    which = f"games on which people and {judge.title} disagree,"
    try:
        version, left_out = export.store(
            queue=queue, name=form.cleaned_data["name"], by=user, only=judge.wrong, which=which
        )
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("judgments:judges", pk)
    messages.success(request, f"Stored as {version}.")
    if left_out:
        messages.warning(request, f"{len(left_out)} games were excluded: {'; '.join(left_out[:5])}.")
    return redirect("scenarios:version", version.dataset.name, version.number)


@dataclass(frozen=True)
class LinkedTarget:
    """How tables show a target: its game, as a link where the reader may see it, and for whoever may, a link to decide
    on it. Both are made once, however many rows are about the target.
    """

    game: str
    decide: str


def _linked(queue: Queue, user: User, pks: Collection[int]) -> dict[str, Any]:
    """The targets that pages link, by key.

    Those of a match in which the person played and has yet to be shown who the others were are left out.
    """
    hidden = withheld.unrevealed(queue, user)
    shown = Target.objects.with_links().in_bulk([pk for pk in pks if pk not in hidden])
    matches = {target.match_id for target in shown.values() if target.match_id is not None}
    readable = Match.objects.visible_to(user).filter(pk__in=matches) if matches else Match.objects.none()
    visible = set(readable.values_list("pk", flat=True))
    decides = user.may_change(queue.owner_id) and not queue.judge and not queue.rule
    return {"linked": {pk: LinkedTarget(_game(target, visible), _decide(target) if decides else "")
                       for pk, target in shown.items()}}  # fmt: skip


def _game(target: Target, visible: Collection[int]) -> str:
    match, episode, conversation = target.match_id, target.episode, target.conversation
    if match is not None and match not in visible:
        return f"match {match}"
    if match is not None:
        return format_html('<a href="{}">match {}</a>', reverse("arena:replay", args=[match]), match)
    if conversation is not None:
        scenario, version = conversation.scenario, conversation.scenario.version
        address = reverse("scenarios:scenario", args=[version.dataset.name, version.number, scenario.key])
        return format_html('<a href="{}">{}, conversation {}</a>', address, scenario.key, conversation.position + 1)
    assert episode is not None, "a target is of one game"
    address = reverse("runs:conversation", args=[episode.run_id, episode.step, episode.number])
    return format_html('<a href="{}">step {}, no. {}</a>', address, episode.step, episode.number)


def _decide(target: Target) -> str:
    address = reverse("judgments:decide", args=[target.queue_id, target.pk])
    return format_html('<a href="{}">Decide</a>', address)
