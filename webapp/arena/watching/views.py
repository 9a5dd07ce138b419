"""Requests of spectators: write or report a message, and as a moderator delete it or mute its author.

Users who may not read the messages get 404.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, members
from webapp.arena import access
from webapp.arena.models import Match
from webapp.arena.watching import fragments, services
from webapp.core.http import accepted


def _watched(request: HttpRequest, match_id: int) -> Match:
    match = Match.objects.filter(pk=match_id).first()
    if match is None or not access.may_read_chat(match, current_user(request)):
        raise Http404
    return match


def _moderated(request: HttpRequest, match_id: int) -> Match:
    match = _watched(request, match_id)
    if not access.may_moderate_chat(match, current_user(request)):
        raise Http404
    return match


@require_POST
@members
def write(request: HttpRequest, match_id: int) -> HttpResponse:
    """Write a message; answers with the form, which says why one was refused and keeps its text."""
    match, user = _watched(request, match_id), current_user(request)
    text, problem = request.POST.get("text", ""), ""
    try:
        services.write(match=match, user=user, text=text)
    except BadInput as error:
        problem = error.why
    context = fragments.context(match, user, problem=problem, draft=text if problem else "")
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "arena/watching/form.html", context, status=200)
    if problem:
        return render(request, "arena/watching/page.html", context, status=400)
    return redirect(f"{reverse('arena:table', args=[match.pk])}#watchers")


@require_POST
@members
def report(request: HttpRequest, match_id: int, message_id: int) -> HttpResponse:
    """Report a message to the moderators."""
    match, user = _watched(request, match_id), current_user(request)
    if accepted(request, lambda: services.report(match=match, message_id=message_id, by=user)):
        messages.success(
            request, "The moderators of this chat will read your report. You do not see the message any more."
        )
    return _back(request, match)


@require_GET
@members
def reports(request: HttpRequest) -> HttpResponse:
    """The reported messages of all chats that this user moderates."""
    return render(request, "arena/watching/reports.html", {"reported": services.reported(current_user(request))})


def _back(request: HttpRequest, match: Match) -> HttpResponse:
    """Back to the list of reports, where the request came from it, else to the game or its replay."""
    if request.POST.get("back") == "reports":
        return redirect("arena:chat-reports")
    return redirect(f"{reverse('arena:replay' if match.over else 'arena:table', args=[match.pk])}#watchers")


@require_POST
@members
def dismiss(request: HttpRequest, match_id: int, message_id: int) -> HttpResponse:
    """Keep a reported message as a moderator."""
    match = _moderated(request, match_id)
    accepted(request, lambda: services.dismiss_reports(match=match, message_id=message_id, by=current_user(request)))
    return _back(request, match)


@require_POST
@members
def delete(request: HttpRequest, match_id: int, message_id: int) -> HttpResponse:
    """Delete a message as a moderator."""
    match = _moderated(request, match_id)
    accepted(request, lambda: services.delete(match=match, message_id=message_id, by=current_user(request)))
    return _back(request, match)


@require_POST
@members
def mute(request: HttpRequest, match_id: int, message_id: int) -> HttpResponse:
    """Mute the author of a message as a moderator."""
    match = _moderated(request, match_id)
    accepted(request, lambda: services.mute(match=match, message_id=message_id, by=current_user(request)))
    return _back(request, match)
