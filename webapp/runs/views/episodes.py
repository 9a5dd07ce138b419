"""A run's conversations: the list by step and outcome, one as a dialogue, step by step, and token by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from training.records import ALL, SPECTATOR, Viewer
from webapp.accounts.permissions import get_or_404, researchers
from webapp.core.http import integer, render_block, wants_fragment
from webapp.runs import files
from webapp.runs.episodes import beliefs, replaying, transcript
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
    course = replaying.course(played)
    shown = {
        "episode": episode,
        "scenario": played["scenario"],
        "returns": _returns(record),
        "roles": _roles(played),
        "turns": transcript.turns(record, course),
        "briefs": transcript.briefs(played),
        "course": course,
        "believed": _over_time(course, course.believed, played) if course else [],
    }
    return page(request, run, "conversation", shown)


def _roles(played: dict[str, Any]) -> list[tuple[int, str, str]]:
    """Each seat with its name and role; empty without roles."""
    names = played["scenario"]["seats"]
    return [(seat, names[seat], role) for seat, role in enumerate(transcript.roles(played))]


@require_GET
@researchers
def replay(request: HttpRequest, run_id: int, step: int, number: int) -> HttpResponse:
    """One conversation as one viewer (`?viewer=`, all-seeing first) had seen it by one step of the game (`?step=`)."""
    run, episode = _episode(request, run_id, step, number)
    played = _record(episode)["episode"]
    course = replaying.course(played)
    if course is None:
        raise Http404
    viewer = _viewer(request, course)
    at = integer(request, "step", course.steps, 0, course.steps)
    game = course.after(at)
    rows, dealt = replaying.rows(game, viewer), _roles(played)
    told = [one for one in course.believed if viewer in (ALL, one.seat)]
    shown = {
        "run": run,
        "episode": episode,
        "course": course,
        "viewer": viewer,
        "viewpoints": [(place, _label(course, place)) for place in course.viewers],
        "step": at,
        "before": at - 1 if at else None,
        "after": at + 1 if at < course.steps else None,
        "phase": game.phase(viewer),
        "board": replaying.board(game, viewer),
        "opening": rows[0].message["text"] if rows else "",
        "rows": rows,
        "names": dict(enumerate(course.scenario.seats)),
        "dealt": bool(dealt),
        "roles": dealt if viewer == ALL or at == course.steps else [],
        "asked": beliefs.at_step(told, course.scenario.seats, at),
        "believed": _over_time(course, told, played),
    }
    if wants_fragment(request):
        return render_block(request, "runs/replay.html", "replay", shown)
    return page(request, run, "replay", shown)


def _over_time(
    course: replaying.Course, told: Sequence[beliefs.Believed], played: dict[str, Any]
) -> list[beliefs.SeatBeliefs]:
    return beliefs.over_time(told, course.scenario.seats, transcript.roles(played))


def _viewer(request: HttpRequest, course: replaying.Course) -> Viewer:
    """The viewpoint asked for; 404 if there is none such."""
    wanted = request.GET.get("viewer", str(ALL))
    for viewer in course.viewers:
        if str(viewer) == wanted:
            return viewer
    raise Http404


def _label(course: replaying.Course, viewer: Viewer) -> str:
    special = {ALL: "All-seeing", SPECTATOR: "Spectator"}
    return special.get(viewer) or f"As {course.scenario.seats[viewer]}"


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
