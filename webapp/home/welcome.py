"""The first page of visitors: what Parley is, a recorded game that replays itself, and games to play; and of guests.

Nothing here needs an account, and the page of a visitor reads nothing of other people's.
"""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.accounts.permissions import current_user
from webapp.arena import access
from webapp.arena.models import Match
from webapp.arena.setup import finding
from webapp.core.http import integer, render_page
from webapp.home import recorded

SHOWN = 10


def page(request: HttpRequest) -> HttpResponse:
    """A recorded game, `?game=`, at one step, `?step=`; a fragment is the game alone."""
    game = request.GET.get("game") or next(iter(recorded.RECORDINGS))
    if game not in recorded.RECORDINGS:
        raise Http404
    step = integer(request, "step", 0, 0, recorded.played(game).steps)
    offers = {offer.spec.name: offer for offer in finding.guest_offers()}
    context = {
        "recording": recorded.RECORDINGS[game],
        "recordings": recorded.RECORDINGS.values(),
        "view": recorded.view(game, step),
        "offer": offers[game],
        "others": [offer for name, offer in offers.items() if name != game],
    }
    return render_page(request, "home/welcome.html", context, "recorded")


def guest_page(request: HttpRequest) -> HttpResponse:
    """The game that a guest plays; between games, those to play next, and how to keep them."""
    user = current_user(request)
    matches = Match.objects.visible_to(user).order_by("-pk")
    if playing := matches.filter(state__in=[Match.State.OPEN, Match.State.RUNNING]).first():
        return redirect("arena:table", playing.pk)
    context = {"offers": finding.offers(user), "lines": access.lines(matches.with_seats()[:SHOWN], user)}
    return render(request, "home/guest.html", context)
