"""Pages of facilitators: the live monitor, notices, replacing a participant; and the results with their export."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from training.evaluate import intervals
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.arena.play import services
from webapp.core import csv_files, streaming
from webapp.core.http import accepted, render_page
from webapp.experiments import export, facilitating, grouping, results
from webapp.experiments.forms import NoticeForm
from webapp.experiments.models import Arm, Experiment, Participant
from webapp.experiments.states import Stage
from webapp.experiments.views.experiments import visible_experiment


@require_GET
@researchers
def monitor(request: HttpRequest, pk: int) -> HttpResponse:
    """Who is at which stage, who waits for how long, who left; asks for itself again every few seconds."""
    experiment = visible_experiment(request, pk)
    return render_page(request, "experiments/monitor.html", _monitor(experiment, request), "live")


def _monitor(experiment: Experiment, request: HttpRequest) -> dict[str, Any]:
    now = services.database_now()
    people = list(experiment.participants.listed())
    connected = now - grouping.CONNECTED
    is_owner = experiment.owner_id == current_user(request).pk
    rows = [
        {
            "participant": each,
            "name": (is_owner and each.external_id) or f"#{each.pk}",
            "waits": (now - each.waiting_since).total_seconds() if each.waiting_since else None,
            "in_view": each.seen_at is not None and each.seen_at >= connected and each.visible,
            "may_act": each.outcome in {"", Participant.Outcome.LEFT},
        }
        for each in people
    ]
    return {
        "experiment": experiment,
        "tab": "monitor",
        "rows": sorted(rows, key=lambda row: (not row["may_act"], -(row["waits"] or 0))),
        "arms": [(arm, _counts(arm, people, now)) for arm in experiment.arms.select_related("experiment")],
        "stages": dict(Counter(each.where for each in people)),
        "polling": experiment.state != Experiment.State.CLOSED or any(not each.outcome for each in people),
        "nudge": facilitating.NUDGE,
    }


def _counts(arm: Arm, participants: list[Participant], now: datetime) -> dict[str, Any]:
    people = [each for each in participants if each.arm_id == arm.pk]
    done = [each for each in people if each.outcome == Participant.Outcome.COMPLETED]
    counted = [each for each in done if each.group is not None and not each.group.broken_why]
    return {
        "begun": len(people),
        "waiting": sum(each.stage == Stage.WAIT and not each.outcome for each in people),
        "playing": sum(each.stage == Stage.PLAY and not each.outcome for each in people),
        "complete": len(counted),
        "per_arm": arm.experiment.per_arm,
        "problem_s": (now - arm.problem_since).total_seconds() if arm.problem_since else None,
        "left": sum(each.outcome in {Participant.Outcome.LEFT, Participant.Outcome.REMOVED} for each in people),
    }


def _participant(request: HttpRequest, pk: int, participant_id: int) -> Participant:
    return get_or_404(visible_experiment(request, pk).participants.all(), pk=participant_id)


@require_POST
@researchers
def nudge(request: HttpRequest, pk: int, participant_id: int) -> HttpResponse:
    """Show a notice to one participant."""
    participant = _participant(request, pk, participant_id)
    form = NoticeForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was shown: a notice has at most 200 characters.")
    elif accepted(request, partial(facilitating.nudge, participant=participant, text=form.cleaned_data["text"])):
        done = "The notice is shown to the participant." if form.cleaned_data["text"] else "The notice is removed."
        messages.success(request, done)
    return redirect("experiments:monitor", pk)


@require_POST
@researchers
def replace(request: HttpRequest, pk: int, participant_id: int) -> HttpResponse:
    """Replace one participant."""
    participant = _participant(request, pk, participant_id)
    if accepted(request, partial(facilitating.replace, participant=participant)):
        messages.success(request, "Replaced: a stand-in plays on, and the place goes to the next newcomer.")
    return redirect("experiments:monitor", pk)


@require_GET
@researchers
def results_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Each arm's means with intervals, and the differences between arms."""
    experiment = visible_experiment(request, pk)
    report = results.compute(experiment)
    context = {
        "experiment": experiment,
        "tab": "results",
        "results": report,
        "arms": list(zip(report.arms, report.groups, report.people, strict=True)),
        "caution": intervals.CAUTION if report.few else "",
        "method": "95 %, Student’s t over groups; exact (Clopper-Pearson) for shares of groups",
    }
    return render(request, "experiments/results.html", context)


@require_GET
@researchers
def export_file(request: HttpRequest, pk: int, form: str) -> HttpResponseBase:
    """The export as CSV or JSON lines."""
    if form not in {"csv", "jsonl"}:
        raise Http404
    experiment, user = visible_experiment(request, pk), current_user(request)
    title = f"experiment-{experiment.pk}"
    if form == "csv":
        return csv_files.response(request, title, export.columns(experiment), export.table(experiment, user))
    pieces = streaming.lines(export.json_lines(experiment, user))
    response = streaming.stream(request, pieces, "application/jsonl; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{title}.jsonl"'
    return response
