"""The home page: active runs, open tables, pending judgments; on a new installation, those of three beginnings that
nobody has tried.

A player's begins with the games. A visitor's and a guest's are in `webapp.home.welcome`.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from training import bases
from training.config import RunConfig
from training.errors import BadInput
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import current_user, researchers
from webapp.arena.models import Match
from webapp.arena.setup import finding
from webapp.core.http import STOP_ASKING, render_block, wants_fragment
from webapp.home import welcome
from webapp.judgments.models import Judgment, Queue
from webapp.runs import services
from webapp.runs.models import Checkpoint, Run
from webapp.runs.presets import PRESETS

SHOWN = 6
TINY = "tiny"
NEW = 5
"""An installation with fewer runs offers what nobody has tried yet."""


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return welcome.page(request)
    user = current_user(request)
    if user.is_guest:
        return welcome.guest_page(request)
    if user.is_researcher and wants_fragment(request):
        begin = _begin(user)
        return render_block(request, "home/index.html", "begin", begin, STOP_ASKING if begin["ready"] else 200)
    tables = Match.objects.without_spoilers(user).with_seats()
    runs = Run.objects.visible_to(user).experiments().listed()
    context = {
        **(_begin(user) if user.is_researcher else {"begins": 0}),
        "alive": runs.alive().with_progress().order_by("-pk")[:SHOWN],
        "recent": runs.over().order_by("-pk")[:SHOWN],
        "waiting": tables.waiting().not_of(user).order_by("-created_at")[:SHOWN],
        "mine": tables.of(user).filter(state__in=["open", "running"]).order_by("-pk")[:SHOWN],
        "offers": finding.offers(user) if user.role == Role.PLAYER else [],
        "judging": Queue.objects.assigned_to(user, unfinished=True)[:SHOWN],
    }
    return render(request, "home/index.html", context)


def _begin(user: User) -> dict[str, Any]:
    """The context of the three ways to begin: which are untried; the tiny model, or the progress of its preparation."""
    entry = bases.REGISTRY[TINY]
    ready = bases.is_prepared(entry)
    state = None if ready else bases.preparation(entry)
    runs = Run.objects.experiments().count()
    judged = Judgment.objects.filter(outside_author="").exists()  # not what came with an import
    untried = {"watch": not runs, "sit": not Match.objects.exists(), "judge": not judged}
    return {
        "untried": untried,
        "begins": sum(untried.values()) if runs < NEW else 0,
        "opponent": Checkpoint.objects.visible_to(user).filter(base=TINY).order_by("-pk").first(),
        "finished": Match.objects.exportable().order_by("-pk").first(),
        "ready": ready,
        "preparing": state,
        "seconds_left": state.seconds_left(time.time()) if state else None,
    }


@require_GET
@researchers
def running(request: HttpRequest) -> HttpResponse:
    """The numbers of running and queued runs, for the bar of every page; they open a short list."""
    alive = Run.objects.visible_to(current_user(request)).experiments().alive()
    queued = Count("pk", filter=Q(state=Run.State.QUEUED))
    counts = alive.aggregate(queued=queued, running=Count("pk") - queued)
    return render(request, "home/running.html", {"runs": alive.listed().order_by("-pk")[:8], **counts})


@require_POST
@researchers
def watch(request: HttpRequest) -> HttpResponseBase:
    """Start the quick trial and go to its page."""
    try:
        run = services.create_run(owner=current_user(request), config=RunConfig.from_dict(PRESETS["quick"].config()))
    except BadInput as error:
        messages.error(request, f"The quick trial was not started: {error.why}.")
        return redirect("home:index")
    return redirect("runs:detail", run.pk)
