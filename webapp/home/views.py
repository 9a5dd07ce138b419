"""The home page: active runs, open tables, pending judgments; a researcher's begins with the guided tour.

A player's begins with the games. A visitor's and a guest's are in `webapp.home.welcome`.
"""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.models import Role
from webapp.accounts.permissions import current_user, researchers
from webapp.arena.models import Match
from webapp.arena.setup import finding
from webapp.core.http import accepted
from webapp.home import guided, samples, welcome
from webapp.judgments.models import Queue
from webapp.runs.models import Run

SHOWN = 6


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return welcome.page(request)
    user = current_user(request)
    if user.is_guest:
        return welcome.guest_page(request)
    tables = Match.objects.without_spoilers(user).with_seats()
    runs = Run.objects.visible_to(user).without_servers().listed()
    offers = finding.offers(user) if user.role == Role.PLAYER else []
    context = {
        **(guided.context(user) if user.is_researcher else {}),
        "alive": runs.alive().with_progress().order_by("-pk")[:SHOWN],
        "recent": runs.over().order_by("-pk")[:SHOWN],
        "waiting": tables.waiting().not_of(user).order_by("-created_at")[:SHOWN],
        "mine": tables.of(user).filter(state__in=["open", "running"]).order_by("-pk")[:SHOWN],
        "offers": offers,
        "somebody_waited": finding.somebody_waited(offers),
        "judging": Queue.objects.assigned_to(user, unfinished=True)[:SHOWN],
    }
    return render(request, "home/index.html", context)


@require_GET
@researchers
def running(request: HttpRequest) -> HttpResponse:
    """The numbers of running and queued runs, for the bar of every page; they open a short list."""
    alive = Run.objects.visible_to(current_user(request)).without_servers().alive()
    queued = Count("pk", filter=Q(state=Run.State.QUEUED))
    counts = alive.aggregate(queued=queued, running=Count("pk") - queued)
    return render(request, "home/running.html", {"runs": alive.listed().order_by("-pk")[:8], **counts})


@require_POST
@researchers
def store_samples(request: HttpRequest) -> HttpResponse:
    """Store the sample runs that are not stored; the page of each has a button that removes them all."""
    stored: list[Run] = []
    if accepted(request, lambda: stored.extend(samples.install(again=True))):
        runs = f"{len(stored)} sample run{pluralize(len(stored))}"
        done = f"{runs} stored. The page of each can remove them all." if stored else "All samples are stored already."
        messages.success(request, done)
    return redirect("runs:list")


@require_POST
@researchers
def remove_samples(request: HttpRequest) -> HttpResponse:
    """Remove all sample runs; they are nobody's work, and can be stored again."""
    if accepted(request, samples.remove):
        messages.success(
            request, "The sample runs have been removed. An empty list of runs offers to store them again."
        )
    return redirect("runs:list")
