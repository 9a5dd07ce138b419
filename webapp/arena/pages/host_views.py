"""Actions besides moves: ready and taking a seat back for players; start, pause and stand-ins for the host.

Each view redirects to the table, which shows the reason of a refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from webapp.accounts.permissions import current_user, everyone, members
from webapp.arena.models import Match
from webapp.arena.pages.views import hosted_match, visible_match
from webapp.arena.play import hosting
from webapp.arena.setup import countdowns, waiting_room
from webapp.core.http import accepted


def _done(request: HttpRequest, match: Match, work: Callable[[], object]) -> HttpResponse:
    accepted(request, work)
    return redirect("arena:table", match.pk)


@require_POST
@everyone
def ready(request: HttpRequest, match_id: int) -> HttpResponse:
    """Mark the user as ready."""
    match = visible_match(request, match_id)
    return _done(request, match, partial(waiting_room.say_ready, match=match, user=current_user(request)))


@require_POST
@everyone
def take_back(request: HttpRequest, match_id: int) -> HttpResponse:
    """Take the user's seat back from a stand-in."""
    match = visible_match(request, match_id)
    return _done(request, match, partial(hosting.take_back, match=match, user=current_user(request)))


@require_POST
@members
def fill(request: HttpRequest, match_id: int) -> HttpResponse:
    """Fill the empty seats with bots and begin: those of the table's countdown, else scripted players."""
    match = hosted_match(request, match_id)
    counts_down = match.hides_seats or match.countdown_ends_at is not None
    begin = countdowns.end_early if counts_down else waiting_room.fill
    return _done(request, match, partial(begin, match=match))


@require_POST
@members
def stop_countdown(request: HttpRequest, match_id: int) -> HttpResponse:
    """Let the table wait for people instead of filling its seats."""
    match = hosted_match(request, match_id)
    return _done(request, match, partial(countdowns.stop, match=match))


@require_POST
@members
def pause(request: HttpRequest, match_id: int) -> HttpResponse:
    """Stop the clock."""
    match = hosted_match(request, match_id)
    return _done(request, match, partial(hosting.pause, match=match))


@require_POST
@members
def resume(request: HttpRequest, match_id: int) -> HttpResponse:
    """Resume the clock."""
    match = hosted_match(request, match_id)
    return _done(request, match, partial(hosting.resume, match=match))


@require_POST
@members
def replace(request: HttpRequest, match_id: int, number: int) -> HttpResponse:
    """Let a scripted player move for a seat."""
    match = hosted_match(request, match_id)
    return _done(request, match, partial(hosting.replace, match=match, number=number))


@require_POST
@members
def kick(request: HttpRequest, match_id: int, number: int) -> HttpResponse:
    """Remove the player of a seat."""
    match = hosted_match(request, match_id)
    return _done(request, match, partial(hosting.kick, match=match, number=number))
