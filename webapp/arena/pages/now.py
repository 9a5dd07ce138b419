"""Playing at once: one press seats the user. Somebody who is not signed in becomes a guest, which is throttled."""

from __future__ import annotations

from django.contrib.auth import login
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from training.errors import BadInput
from training.games import lookup
from webapp.accounts import guests
from webapp.accounts.models import User
from webapp.accounts.services import create_guest
from webapp.arena.models import Match
from webapp.arena.setup import finding

GUEST = "Guest"


@require_POST
def play_now(request: HttpRequest, game: str) -> HttpResponse:
    """Sit down: with a person who waits, else against a model or a scripted player.

    Where others can join during a countdown, the answer about consent comes first.
    """
    if game not in {spec.name for spec in finding.games()}:
        raise Http404
    user = request.user if isinstance(request.user, User) else None
    if (user is None and guests.is_throttled(request, "visitor")) or (
        (user is None or user.is_guest) and guests.is_throttled(request, "guest_table")
    ):
        return render(request, "429.html", status=429)
    consent = None
    if finding.asks_first(user, game):
        consent = {"yes": True, "no": False}.get(request.POST.get("consent", ""))
        if consent is None:
            return render(request, "arena/before_now.html", {"spec": lookup(game), "seconds": finding.COUNTDOWN_S})
    try:
        match, player = _seat(user, game, consent)
    except BadInput as error:
        context = {"spec": lookup(game), "why": error.why}
        return render(request, "arena/not_seated.html", context, status=400)
    if user is None:
        login(request, player)
    return redirect("arena:table", match.pk)


@transaction.atomic
def _seat(user: User | None, game: str, consent: bool | None) -> tuple[Match, User]:
    """Seat the user, or a new guest, who exists only if a seat does."""
    player = user or create_guest(shown_name=GUEST)
    return finding.play_now(user=player, game=game, consent=consent), player
