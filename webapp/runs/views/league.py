"""A run's league: the payoff table with its meta-strategy, and the games behind one of its cells."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from training.evaluate.intervals import CAUTION, METHOD
from webapp.accounts.permissions import researchers
from webapp.core.http import integer
from webapp.runs.models import PlayedEpisode
from webapp.runs.summaries import league as summaries
from webapp.runs.views.run import page, visible

PAGE = 40


@require_GET
@researchers
def league(request: HttpRequest, run_id: int) -> HttpResponse:
    """The table of each side of the learner, with all checkpoints for `?all=1`; or what to set to have one."""
    run = visible(request, run_id)
    grids = summaries.grids(run, whole=request.GET.get("all") == "1")
    few = any(entry.result.few for grid in grids for entry in grid.table.cells)
    context = {"grids": grids, "method": METHOD, "caution": CAUTION if few else "", "every": _every(run.config)}
    return page(request, run, "league", context)


def _every(config: dict[str, Any]) -> int:
    """How often the run's league plays; 0 = never."""
    return int(config.get("league", {}).get("every", 0))


@require_GET
@researchers
def games(request: HttpRequest, run_id: int) -> HttpResponse:
    """The games of one cell: `?checkpoint=` (its step), `?opponent=` and `?learner=`; without them, the whole table."""
    run = visible(request, run_id)
    if "checkpoint" not in request.GET:
        return redirect("runs:league", run_id)
    step = integer(request, "checkpoint", -1, -1)
    opponent, learner = request.GET.get("opponent", "")[:500], request.GET.get("learner", "one")[:2000]
    cell = summaries.find(run, step, opponent, learner)
    if cell is None:
        raise Http404
    episodes = run.episodes.of_league(cell.after, cell.first, cell.games + cell.errors)
    context = {
        "cell": cell,
        "learner": learner,
        "page": (listed := Paginator(episodes.defer("file"), PAGE).get_page(integer(request, "page", 1, low=1))),
        "columns": (f"Step {step}", opponent),
        "rows": [(episode, _results(episode, step)) for episode in listed],
        "other": summaries.opponent_checkpoint(run, opponent),
    }
    return page(request, run, "league_games", context)


def _results(episode: PlayedEpisode, step: int) -> tuple[list[float], list[float]]:
    """The results of the checkpoint's seats and those of the opponent's.

    The games of two checkpoints count for both, from either side.
    """
    summary = episode.summary
    sides = {name: [summary["returns"][str(seat)] for seat in summary["seats"][name] if str(seat) in summary["returns"]]
             for name in ("a", "b")}  # fmt: skip
    first, second = ("a", "b") if episode.league and episode.league["step"] == step else ("b", "a")
    return sides[first], sides[second]
