"""Playing alone: choosing a task, and afterwards one's own play beside that of a model."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from training.errors import BadInput
from training.games import REGISTRY, lookup
from training.records import SPECTATOR
from training.views import TableView
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, members
from webapp.arena.live import client_state
from webapp.arena.models import Match
from webapp.arena.pages.views import visible_match
from webapp.arena.play import plays
from webapp.arena.setup import alone, scenarios
from webapp.arena.setup.alone_form import PlayAlone
from webapp.arena.setup.players import Players
from webapp.core.http import STOP_ASKING, accepted, integer, render_block, wants_fragment


@require_http_methods(["GET", "POST"])
@members
def begin(request: HttpRequest) -> HttpResponse:
    """Choose a task and begin. `?game=`, `?scenario=` and `?checkpoint=` (with whom to compare) set initial values."""
    user = current_user(request)
    stored_id = integer(request, "scenario", 0)
    stored = scenarios.stored_for(user, stored_id) if stored_id else None
    games = alone.games()
    game = stored.game if stored else request.POST.get("game") or request.GET.get("game") or games[0].name
    if (stored_id and stored is None) or game not in REGISTRY or lookup(game) not in games:
        raise Http404
    checkpoint = integer(request, "checkpoint", 0) or None
    data = request.POST if request.method == "POST" else None
    form = PlayAlone(data, user=user, game=game, stored=stored, checkpoint=checkpoint)
    if data is not None and form.is_valid():
        try:
            match = form.watch() if "watch" in data else form.play(consent=data.get("consent") == "yes")
        except BadInput as error:
            form.add_error(error.where if error.where in form.fields else None, error.why)
        else:
            return redirect("arena:table", match.pk)
    context = {"form": form, "spec": lookup(game), "games": games, "stored": stored}
    return render(request, "arena/alone.html", context, status=400 if form.errors else 200)


def result(request: HttpRequest, match: Match) -> HttpResponse:
    """The end of a match with one seat: a person's play beside another one of the same task.

    `?beside=` is the other one; without it, the play that was begun with this one, or the newest.
    """
    user = current_user(request)
    others = list(plays.of_bots(match.task, user)[: plays.SHOWN])
    chosen = integer(request, "beside", 0)
    if chosen and chosen not in {other.pk for other in others}:
        others += plays.of_bots(match.task, user).filter(pk=chosen)[:1]
    left, right = _sides(match, user, others, chosen)
    waiting = right is not None and not right.over
    context: dict[str, Any] = {
        "match": match,
        "spec": lookup(match.game),
        "left": plays.read(left) if left is not None else None,
        "right": plays.read(right) if right is not None else None,
        "left_end": _end(left, user),
        "right_end": _end(right, user),
        "waiting": waiting,
    }
    if wants_fragment(request):
        return render_block(request, "arena/alone_result.html", "sides", context, 200 if waiting else STOP_ASKING)
    context |= {
        "task": client_state.read(match, SPECTATOR).view.story,
        "others": others,
        "failed": match.companions.filter(state=Match.State.ABORTED).first() if right is None else None,
        "attempts": [plays.read(attempt) for attempt in plays.attempts(match.task, user)],
        "means": plays.means(match.task, user),
        "players": [] if user.is_guest else Players(user, lookup(match.game)).choices(),
        "mine": match.seats.filter(user=user).first(),
    }
    return render(request, "arena/alone_result.html", context)


def _end(match: Match | None, user: User) -> TableView | None:
    """The table as a play ended, from the place of the user if it is theirs; None for a play that has not ended."""
    if match is None or not match.over:
        return None
    mine = match.seats.filter(seat=plays.SEAT, user=user).exists()
    return client_state.read(match, plays.SEAT if mine else SPECTATOR).view


def _sides(match: Match, user: User, others: list[Match], chosen: int) -> tuple[Match | None, Match | None]:
    """The person's play, and the other one: that of this page, and the one to compare it with."""
    if not match.seats.filter(kind__in=plays.BOTS).exists():
        if chosen:
            return match, next((other for other in others if other.pk == chosen), None)
        begun_with = next((other for other in others if other.beside_id == match.pk), None)
        return match, begun_with or next((other for other in others if other.over), None)
    own_play = plays.attempts(match.task, user).filter(state=Match.State.FINISHED).last()
    return own_play, match


@require_POST
@members
def accompany(request: HttpRequest, match_id: int) -> HttpResponseBase:
    """Let the chosen player play the task of a person's play that has ended."""
    match, user = visible_match(request, match_id), current_user(request)
    if not match.task:
        raise Http404
    players = Players(user, lookup(match.game))
    choice = request.POST.get("player", "")
    if choice not in dict(players.choices()):
        raise Http404
    accepted(request, lambda: alone.accompany(match=match, user=user, player=players.place(choice)))
    return redirect("arena:result", match.pk)
