"""A run's conversations: list by step and outcome, dialogue, replay by step, and tokens."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from training.records import SPECTATOR
from webapp.accounts.permissions import get_or_404, researchers
from webapp.core import files
from webapp.core.http import integer, render_block, wants_fragment
from webapp.runs.episodes import beliefs, discussions, replaying, transcript, viewer
from webapp.runs.models import PlayedEpisode, Run
from webapp.runs.summaries import league, suites
from webapp.runs.views.run import page, visible

PAGE = 40


@require_GET
@researchers
def conversations(request: HttpRequest, run_id: int) -> HttpResponse:
    """The conversations of one step (the newest unless `?step=`), filtered by `?outcome=`."""
    run = visible(request, run_id)
    played = run.episodes.of_training()
    steps = played.steps()
    step = integer(request, "step", steps[0] if steps else 0)
    outcome = request.GET.get("outcome", "")[:40]
    episodes = played.filter(step=step, **({"outcome": outcome} if outcome else {})).order_by("number")
    listed = Paginator(episodes.defer("file"), PAGE).get_page(integer(request, "page", 1, low=1))
    context = {
        "run": run,
        "steps": steps if run.kind != Run.Kind.SUITE else suites.blocks(run, steps),
        "step": step,
        "outcome": outcome,
        "outcomes": played.outcomes(),
        "page": listed,
        "columns": ("Rewards",),
        "rows": [(each, (each.summary.get("returns", {}).values(),)) for each in listed],
    }
    if wants_fragment(request):
        return render_block(request, "runs/conversations.html", "results", context)
    return page(request, run, "conversations", context)


def _episode(request: HttpRequest, run_id: int, step: int, number: int) -> tuple[Run, PlayedEpisode]:
    run = visible(request, run_id)
    return run, get_or_404(run.episodes.all(), step=step, number=number)


def _record(episode: PlayedEpisode) -> dict[str, Any]:
    """The record from the episode file; 404 if the file is missing or damaged."""
    try:
        return files.read_member(episode.file, episode.offset, episode.length)
    except files.UNREADABLE as error:
        raise Http404 from error


@require_GET
@researchers
def conversation(request: HttpRequest, run_id: int, step: int, number: int) -> HttpResponse:
    """One conversation to read."""
    run, episode = _episode(request, run_id, step, number)
    record = _record(episode)
    game_record = record["episode"]
    course, roles = replaying.course(game_record), transcript.roles(game_record)
    names, believed = game_record["scenario"]["seats"], course.believed if course else ()
    context = {
        "episode": episode,
        "league": _league(episode, record),
        "scenario": game_record["scenario"],
        "returns": _returns(record),
        "roles": viewer.named_roles(names, roles),
        "turns": transcript.turns(record, course),
        "briefs": transcript.briefs(game_record),
        "course": course,
        "believed": beliefs.over_time(believed, names, roles),
        "discussions": discussions.discussions(believed, course.spoken if course else (), names, roles),
    }
    return page(request, run, "conversation", context)


def _league(episode: PlayedEpisode, record: dict[str, Any]) -> dict[str, Any] | None:
    """The pair of a game of the league, with the names at the checkpoint's seats; None for a game of training."""
    if episode.league is None:
        return None
    opponent = episode.league["opponent"]
    named = {"opponent": league.names(episode.run).get(opponent, opponent)}
    return {
        **episode.league,
        **named,
        "seats": [transcript.seat_name(record["episode"], seat) for seat in record["seats"]["a"]],
    }


@require_GET
@researchers
def replay(request: HttpRequest, run_id: int, step: int, number: int) -> HttpResponse:
    """One conversation from a viewpoint (`?viewer=`, by default all-seeing) at a step of the game (`?step=`)."""
    run, episode = _episode(request, run_id, step, number)
    game_record = _record(episode)["episode"]
    course = replaying.course(game_record)
    if course is None:
        raise Http404
    place = viewer.requested_viewpoint(request.GET.get("viewer", ""), course.viewers)
    at = integer(request, "step", course.steps, 0, course.steps)
    view = viewer.view_of_course(course, transcript.roles(game_record), place, at)
    context = {"run": run, "episode": episode, "view": view, "beliefs_note": _beliefs_note(view)}
    if wants_fragment(request):
        return render_block(request, "runs/replay.html", "replay", context)
    return page(request, run, "replay", context)


def _beliefs_note(view: viewer.ReplayView) -> str:
    """The reason why there are no beliefs to show; empty if there are."""
    if view.believed:
        return ""
    if view.viewer == SPECTATOR:
        return "Spectators are not probed."
    return "No beliefs: “rollout · probes” was off, the game has no probes, or none of our models played this seat."


@require_GET
@researchers
def tokens(request: HttpRequest, run_id: int, step: int, number: int) -> HttpResponse:
    """One conversation token by token."""
    run, episode = _episode(request, run_id, step, number)
    record = _record(episode)
    context = {"episode": episode, "returns": _returns(record), "traces": transcript.traces(record, run)}
    return page(request, run, "tokens", context)


def _returns(record: dict[str, Any]) -> list[tuple[str, float | None]]:
    returns = record.get("returns") or record["episode"].get("returns") or {}
    return [(transcript.seat_name(record["episode"], int(seat)), value) for seat, value in sorted(returns.items())]
