"""What the owner of a queue does on its page: state, batches, annotators, invitations, more games."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import accepted
from webapp.judgments.models import Invitation, Queue
from webapp.judgments.queues import gold, invitations, sharing
from webapp.judgments.queues import services as queues
from webapp.judgments.queues.forms import GamesForm

STATES = {
    "pause": (queues.pause, "The queue is paused: annotators get no targets until you resume it."),
    "resume": (queues.resume, "The queue is open again."),
    "close": (queues.close, "The queue is closed."),
    "open_batch": (queues.open_batch, "The next batch is open."),
}


def _own_queue(request: HttpRequest, pk: int) -> Queue:
    return get_or_404(Queue.objects.changeable_by(current_user(request)), pk=pk)


@require_POST
@researchers
def queue_state(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Pause, resume or close a queue, or open its next batch: the field `to`."""
    queue = _own_queue(request, pk)
    work, said = STATES.get(request.POST.get("to", ""), (None, ""))
    if work is None:
        messages.error(request, "A queue has no such state.")
    elif accepted(request, partial(work, queue=queue)):
        messages.success(request, said)
    return redirect("judgments:queue", pk)


@require_POST
@researchers
def queue_annotators(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Add annotators: the field `annotators`, their keys."""
    queue = _own_queue(request, pk)
    keys = [key for key in request.POST.getlist("annotators") if key.isascii() and key.isdigit() and len(key) < 19]
    people = sharing.addable().filter(pk__in=keys)
    if not people:
        messages.error(request, "Choose somebody to add.")
    elif accepted(request, partial(sharing.add_annotators, queue=queue, annotators=people)):
        shared = queue.assignment == Queue.Assignment.PREASSIGNED
        note = " Targets that are already assigned stay with their annotators: reassign some." if shared else ""
        messages.success(request, f"Added: {', '.join(sorted(user.username for user in people))}.{note}")
    return redirect("judgments:queue", pk)


@require_POST
@researchers
def queue_annotator(request: HttpRequest, pk: int, user_id: int) -> HttpResponseBase:
    """Remove an annotator, reassign what they have not judged, or decide their qualification test: the field `do`."""
    queue = _own_queue(request, pk)
    person = get_or_404(User.objects.filter(annotation_queues=queue), pk=user_id)
    try:
        match request.POST.get("do", ""):
            case "remove":
                said = _moved(*sharing.remove_annotator(queue=queue, annotator=person))
                said = f"{person.username} no longer judges in this queue. {said} You can add them again."
            case "reassign":
                said = _moved(*sharing.reassign(queue=queue, from_=person)) or "Nothing was assigned to them."
            case "pass":
                gold.decide(queue=queue, user=person, passed=True)
                said = f"{person.username} may judge the whole queue."
            case "again":
                gold.decide(queue=queue, user=person, passed=False)
                said = f"{person.username} may retake the qualification test."
            case _:
                raise BadInput("there is no such action", "do")
    except BadInput as error:
        messages.error(request, f"Nothing was changed: {error.why}.")
    else:
        messages.success(request, said)
    return redirect("judgments:queue", pk)


def _moved(moved: int, stayed: int) -> str:
    said = f"{moved} of their targets were reassigned." if moved else ""
    return f"{said} {stayed} could not be reassigned to anybody." if stayed else said


@require_POST
@researchers
def queue_invite(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Make an invitation and show its link once."""
    queue, user = _own_queue(request, pk), current_user(request)
    try:
        token = invitations.invite(queue=queue, by=user)
    except BadInput as error:
        messages.error(request, f"There is no link: {error.why}.")
        return redirect("judgments:queue", pk)
    link = request.build_absolute_uri(reverse("judgments:invitation", args=[token]))
    return render(request, "judgments/invited.html", {"queue": queue, "link": link, "days": invitations.DAYS})


@require_POST
@researchers
def queue_uninvite(request: HttpRequest, pk: int, invitation_id: int) -> HttpResponseBase:
    queue = _own_queue(request, pk)
    invitation = get_or_404(queue.invitations.all(), pk=invitation_id)
    if accepted(request, partial(invitations.revoke, invitation=invitation)):
        messages.success(request, "The invitation was revoked.")
    return redirect("judgments:queue", pk)


@require_http_methods(["GET", "POST"])
@researchers
def queue_games(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Add games to a queue as its next batch; with `preview`, count those that match."""
    queue, user = _own_queue(request, pk), current_user(request)
    form = GamesForm(user, request.POST or None)
    context = {"form": form, "queue": queue}
    if request.method == "POST" and form.is_valid():
        if "preview" in request.POST:
            return render(request, "judgments/queue_games.html", {**context, "count": count(form)})
        try:
            added = queues.add_games(queue=queue, by=user, selection=form.selection(), **form.games())
        except BadInput as error:
            form.add_error(None, error.why)
        else:
            messages.success(request, f"Added: {added} targets.")
            return redirect("judgments:queue", pk)
    return render(request, "judgments/queue_games.html", context, status=400 if form.errors else 200)


def count(form: GamesForm) -> int:
    """How many games a valid form selects."""
    return sum(len(rows) for rows in form.games().values())


def addable(queue: Queue) -> list[User]:
    """Return whom the owner of a queue may add as an annotator, by name."""
    return list(sharing.addable().exclude(annotation_queues=queue).order_by("username"))


def open_invitations(queue: Queue) -> list[Invitation]:
    """Return the invitations that nobody has accepted, the newest first."""
    return list(queue.invitations.filter(accepted_by=None).order_by("-pk"))
