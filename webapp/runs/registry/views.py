"""Aliases on the page of a checkpoint, and the matrix of checkpoints and opponents."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import accepted, render_page
from webapp.runs.models import Checkpoint
from webapp.runs.registry import matrix as summaries
from webapp.runs.registry import services
from webapp.runs.registry.models import Alias


@require_POST
@researchers
def add(request: HttpRequest, checkpoint_id: int) -> HttpResponse:
    """Let an alias stand for this checkpoint, instead of the one that has it."""
    user = current_user(request)
    checkpoint = get_or_404(Checkpoint.objects.visible_to(user), pk=checkpoint_id)
    name = request.POST.get("alias", "").strip()
    accepted(request, partial(services.set_alias, name=name, checkpoint=checkpoint, by=user))
    return redirect("runs:checkpoint", checkpoint_id)


@require_POST
@researchers
def remove(request: HttpRequest, checkpoint_id: int) -> HttpResponse:
    """Take an alias away from this checkpoint."""
    alias = get_or_404(Alias.objects.filter(checkpoint=checkpoint_id), name=request.POST.get("alias", "")[:40])
    services.remove_alias(alias=alias, by=current_user(request))
    return redirect("runs:checkpoint", checkpoint_id)


@require_GET
@researchers
def matrix(request: HttpRequest) -> HttpResponse:
    """Checkpoints against opponents: `?game=`, and which number (`?number=`)."""
    results = summaries.results(current_user(request))
    games = sorted({result.game for result in results})
    game = request.GET.get("game", "")
    game = game if game in games else next(iter(games), "")
    of_game = [result for result in results if result.game == game]
    numbers = summaries.numbers(of_game)
    number = request.GET.get("number", "")
    number = number if number in numbers else next(iter(numbers), "")
    grid = summaries.grid([result for result in of_game if result.number == number])
    shown = {"game": game, "games": games, "number": number, "title": summaries.TITLES.get(number, "")}
    options = [(name, summaries.TITLES[name]) for name in numbers]
    return render_page(request, "runs/matrix.html", {**shown, "numbers": options, "grid": grid}, "results")
