"""Pages and actions of annotators apart from judging: own queues, skipped targets, leaving, gold answers, invitations.

Open to every member, because an invitation to a queue requires no role.
"""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, get_or_404, members
from webapp.core.http import accepted, render_page
from webapp.judgments import display
from webapp.judgments.models import Queue, Target
from webapp.judgments.queues import gold, invitations, progress, reservations, sharing


@require_GET
@members
def own_queues(request: HttpRequest) -> HttpResponse:
    """A person's queues with the remaining targets, their speed, and their agreement with the others."""
    user = current_user(request)
    rows = progress.own_queues(user)
    skipped = [(row.queue, target) for row in rows for target in row.skipped]
    waiting = (row.agreement for row in rows if row.agreement is not None and not row.agreement.current)
    context = {
        "rows": [(row, row.similarity_of(user)) for row in rows], "skipped": skipped, "analysis": next(waiting, None),
    }  # fmt: skip
    return render_page(request, "judgments/own_queues.html", context, "analysis")


def _target(request: HttpRequest, pk: int, target: str) -> Target:
    queue = get_or_404(Queue.objects.annotated_by(current_user(request)), pk=pk)
    return get_or_404(queue.targets.select_related("queue"), pk=target)


@require_POST
@members
def queue_unskip(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return a skipped target to the queue: the field `target`."""
    target = _target(request, pk, request.POST.get("target", ""))
    accepted(request, partial(reservations.unskip, target=target, user=current_user(request)))
    return redirect("judgments:own_queues")


@require_POST
@members
def queue_leave(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Leave a queue. The judgments of others in it are then no longer withheld from a researcher."""
    user = current_user(request)
    queue = get_or_404(Queue.objects.annotated_by(user), pk=pk)
    if accepted(request, partial(sharing.leave, queue=queue, annotator=user)):
        messages.success(request, f"You no longer judge in {queue.name}. Your judgments stay.")
    return redirect("judgments:own_queues")


@require_GET
@members
def gold_answer(request: HttpRequest, pk: int, target_id: int) -> HttpResponse:
    """The gold labels of a target that this person has judged, with reasons, if the queue shows them.

    Nothing is shown of a seat that they have yet to judge in another queue.
    """
    user = current_user(request)
    queue = get_or_404(Queue.objects.annotated_by(user).filter(gold_feedback=True), pk=pk)
    target = get_or_404(queue.targets.with_games().filter(gold=True), pk=target_id)
    judgment = get_or_404(target.judgments.filter(author=user, decides=False).with_authors())
    decision = get_or_404(target.judgments.not_awaited_by(user).filter(decides=True).with_authors())
    answer, right = display.shown_judgments([judgment, decision], as_annotated=True)
    context = {
        "queue": queue,
        "answer": answer,
        "decision": right,
        "right": gold.judged_right(judgment, decision),
    }
    return render(request, "judgments/gold.html", context)


@require_http_methods(["GET", "POST"])
@members
def invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    """An invitation to a queue: opening it only shows a page, posting accepts it."""
    user = current_user(request)
    valid_invitation = invitations.find(token)
    if valid_invitation is None:
        raise Http404
    refusal = invitations.refusal(valid_invitation, user)
    if request.method == "POST":
        try:
            queue = invitations.accept(token=token, user=user)
        except BadInput as error:
            refusal = error.why
        else:
            messages.success(request, f"You are now an annotator of {queue.name}.")
            return redirect("judgments:own_queues")
    context = {"invitation": valid_invitation, "refusal": refusal}
    return render(request, "judgments/invitation.html", context, status=400 if request.method == "POST" else 200)
