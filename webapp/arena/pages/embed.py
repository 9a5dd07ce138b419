"""Pictures of a replay to put into a paper, a talk or a page, for those who may see the replay from that viewpoint."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlencode

from csp.decorators import csp_update
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from training.records import Viewer
from webapp.accounts.permissions import current_user, everyone
from webapp.arena import access
from webapp.arena.models import Match
from webapp.arena.pages.views import visible_match
from webapp.arena.pictures import scenes
from webapp.arena.pictures.frames import WITHOUT_MOTION
from webapp.core.http import integer
from webapp.runs.episodes import viewer

WITHOUT_MOTION_SHA256 = b64encode(sha256(WITHOUT_MOTION.encode()).digest()).decode()
"""By which a browser that opens an animation at its address accepts its style."""


@dataclass(frozen=True)
class Excerpt:
    """What a picture shows: a viewpoint, a step, and from where to where an animation plays."""

    match: Match
    viewpoints: list[Viewer]
    place: Viewer
    step: int
    first: int
    last: int

    def address(self, name: str, **query: int) -> str:
        """The address of one of the pictures."""
        return f"{reverse(name, args=[self.match.pk])}?{urlencode({'viewer': self.place, **query})}"


def excerpt(request: HttpRequest, match_id: int) -> Excerpt:
    """Read the query; 404 for a match that is not over, and for a viewpoint that the user may not take."""
    match, user = visible_match(request, match_id), current_user(request)
    if not match.over or access.of_experiment(match, user):
        raise Http404
    allowed = access.viewpoints(match, user)
    place = viewer.requested_viewpoint(request.GET.get("viewer", ""), allowed)
    step = integer(request, "step", match.step, 0, match.step)
    first = integer(request, "first", max(0, match.step - scenes.MOST), 0, match.step)
    last = integer(request, "last", min(match.step, first + scenes.MOST), 0, match.step)
    if not first <= last <= first + scenes.MOST:
        last = min(match.step, first + scenes.MOST)
    return Excerpt(match, allowed, place, step, first, last)


@require_GET
@everyone
def picture(request: HttpRequest, match_id: int) -> HttpResponse:
    """One position as SVG."""
    chosen = excerpt(request, match_id)
    (frame,) = scenes.frames_of(chosen.match, chosen.place, chosen.step, chosen.step)
    return _svg(scenes.picture_of(chosen.match).still(frame), f"match-{match_id}-step-{chosen.step}")


@require_GET
@everyone
@csp_update({"style-src": [f"'sha256-{WITHOUT_MOTION_SHA256}'"]})  # type: ignore[arg-type]  # a view with arguments
def animation(request: HttpRequest, match_id: int) -> HttpResponse:
    """Positions one after the other as SVG that plays by itself."""
    chosen = excerpt(request, match_id)
    frames = scenes.frames_of(chosen.match, chosen.place, chosen.first, chosen.last)
    name = f"match-{match_id}-steps-{chosen.first}-{chosen.last}"
    return _svg(scenes.picture_of(chosen.match).animation(frames), name)


def _svg(text: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'inline; filename="{name}.svg"'}
    return HttpResponse(text, content_type="image/svg+xml; charset=utf-8", headers=headers)


@require_GET
@everyone
def embed(request: HttpRequest, match_id: int) -> HttpResponse:
    """Choose a picture, see it, download it, and copy the HTML that shows it with its alternative text."""
    chosen = excerpt(request, match_id)
    shared = scenes.picture_of(chosen.match)
    frames = scenes.frames_of(chosen.match, chosen.place, chosen.first, chosen.last)
    frame = next((frame for frame in frames if frame.step == chosen.step), None)
    if frame is None:
        (frame,) = scenes.frames_of(chosen.match, chosen.place, chosen.step, chosen.step)
    still = chosen.address("arena:picture", step=chosen.step)
    moving = chosen.address("arena:animation", first=chosen.first, last=chosen.last)
    context = {
        "match": chosen.match,
        "chosen": chosen,
        "labels": viewer.viewpoint_labels(chosen.match.scenario["seats"], chosen.viewpoints),
        "most": scenes.MOST,
        "pictures": [
            (
                "still",
                f"Game step {chosen.step}",
                still,
                f"match-{match_id}-step-{chosen.step}.svg",
                shared.words(frame),
            ),
            (
                "moving",
                f"Game steps {chosen.first} to {chosen.last}, playing by itself",
                moving,
                f"match-{match_id}-steps-{chosen.first}-{chosen.last}.svg",
                shared.all_words(frames),
            ),
        ],
        "public": chosen.match.visibility == Match.Visibility.PUBLIC,
        "site": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "arena/embed.html", context)
