"""A run's conversations: the list by step and outcome, one as a dialogue, step by step, and token by token."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from training.records import SPECTATOR
from webapp.accounts.permissions import get_or_404, researchers
from webapp.core.http import integer, render_block, wants_fragment
from webapp.runs import files
from webapp.runs.episodes import beliefs, replaying, transcript, viewer
from webapp.runs.models import PlayedEpisode, Run
from webapp.runs.views.run import page, visible

PAGE = 40


@require_GET
@researchers
def conversations(request: HttpRequest, run_id: int) -> HttpResponse:
    """The conversations of one step (the newest unless `?step=`), filtered by `?outcome=`."""
    run = visible(request, run_id)
    steps = run.episodes.steps()
    step = integer(request, "step", steps[0] if steps else 0)
    outcome = request.GET.get("outcome", "")[:40]
    found = run.episodes.filter(step=step, **({"outcome": outcome} if outcome else {})).order_by("number")
    context = {
        "run": run,
        "steps": steps,
        "step": step,
        "outcome": outcome,
        "outcomes": run.episodes.outcomes(),
        "page": Paginator(found.defer("file"), PAGE).get_page(integer(request, "page", 1, low=1)),
    }
    if wants_fragment(request):
        return render_block(request, "runs/conversations.html", "results", context)
    return page(request, run, "conversations", context)


def _episode(request: HttpRequest, run_id: int, step: int, number: int) -> tuple[Run, PlayedEpisode]:
    run = visible(request, run_id)
    return run, get_or_404(run.episodes.all(), step=step, number=number)


def _record(episode: PlayedEpisode) -> dict[str, Any]:
    """The record, read from its place in the file; 404 if the file is gone or damaged."""
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
    played = record["episode"]
    course, roles = replaying.course(played), transcript.roles(played)
    shown = {
        "episode": episode,
        "scenario": played["scenario"],
        "returns": _returns(record),
        "roles": viewer.named_roles(played["scenario"]["seats"], roles),
        "turns": transcript.turns(record, course),
        "briefs": transcript.briefs(played),
        "course": course,
        "believed": beliefs.over_time(course.believed, course.scenario.seats, transcript.roles(played))
        if course
        else [],
    }
    return page(request, run, "conversation", shown)


@require_GET
@researchers
def replay(request: HttpRequest, run_id: int, step: int, number: int) -> HttpResponse:
    """One conversation as one viewer (`?viewer=`, all-seeing first) had seen it by one step of the game (`?step=`)."""
    run, episode = _episode(request, run_id, step, number)
    played = _record(episode)["episode"]
    course = replaying.course(played)
    if course is None:
        raise Http404
    place = viewer.requested_viewpoint(request.GET.get("viewer", ""), course.viewers)
    at = integer(request, "step", course.steps, 0, course.steps)
    view = viewer.view_of_course(course, transcript.roles(played), place, at)
    shown = {"run": run, "episode": episode, "view": view, "beliefs_note": _beliefs_note(view)}
    if wants_fragment(request):
        return render_block(request, "runs/replay.html", "replay", shown)
    return page(request, run, "replay", shown)


def _beliefs_note(view: viewer.ReplayView) -> str:
    """Why there are no beliefs to show; empty where there are."""
    if view.believed:
        return ""
    if view.viewer == SPECTATOR:
        return "Who only watches was asked nothing."
    return "Nobody was asked here: rollout.probes was off, the game has no questions, or no model of ours sat there."


@require_GET
@researchers
def tokens(request: HttpRequest, run_id: int, step: int, number: int) -> HttpResponse:
    """One conversation token by token."""
    run, episode = _episode(request, run_id, step, number)
    record = _record(episode)
    shown = {"episode": episode, "returns": _returns(record), "traces": transcript.traces(record, run)}
    return page(request, run, "tokens", shown)


def _returns(record: dict[str, Any]) -> list[tuple[str, float | None]]:
    given = record.get("returns") or record["episode"].get("returns") or {}
    return [(transcript.seat_name(record["episode"], int(seat)), value) for seat, value in sorted(given.items())]
