"""Sweeps: the form with a preview, the page of one, and all of them."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core import quotas
from webapp.core.http import STOP_ASKING, accepted, integer, render_block, wants_fragment
from webapp.runs import presets
from webapp.runs.models import Run
from webapp.runs.querysets import ALIVE
from webapp.runs.summaries import curves
from webapp.runs.sweeps import results, services, space
from webapp.runs.sweeps.forms import SweepForm
from webapp.runs.sweeps.models import Sweep
from webapp.runs.sweeps.services import Template


def _template(request: HttpRequest) -> tuple[Template, str]:
    """What the runs share, and its name: `?run=` (as a clone of it) or `?preset=`."""
    user = current_user(request)
    if number := integer(request, "run", 0):
        runs = Run.objects.visible_to(user).without_servers().filter(kind__in=("train", "sft"))
        run = get_or_404(runs.select_related("dataset_version", "start_checkpoint", "opponent_checkpoint"), pk=number)
        return services.template_of(run, user), run.name
    preset = request.GET.get("preset", "quick")
    if preset not in presets.PRESETS or presets.PRESETS[preset].config()["kind"] != Run.Kind.TRAIN:
        raise Http404
    return Template(presets.PRESETS[preset].config()), presets.PRESETS[preset].title


@require_http_methods(["GET", "POST"])
@researchers
def new(request: HttpRequest) -> HttpResponse:
    """The form; a first post shows the runs that it would start, `launch=1` starts them."""
    user = current_user(request)
    template, title = _template(request)
    form = SweepForm(request.POST or None, initial={"name": f"{title} sweep"[:70]})
    preview = None
    if request.method == "POST" and form.is_valid():
        try:
            for values in form.trial_values:
                template.with_values(values, "trial")
            shown = [{path: space.shown(value) for path, value in each.items()} for each in form.trial_values]
            preview = list(enumerate(shown, 1))
            if "launch" in request.POST:
                sweep = form.sweep()
                sweep.owner = user
                return redirect(
                    "runs:sweep", services.launch(sweep=sweep, template=template, trials=form.trial_values).pk
                )
        except BadInput as error:
            form.blame(error)
    trained = [
        (name, each.title) for name, each in presets.startable().items() if each.config()["kind"] == Run.Kind.TRAIN
    ]
    context = {"form": form, "title": title, "paths": template.paths(), "preview": preview, "presets": trained}
    context |= {"quota": _quota(user), "preset": request.GET.get("preset", "quick")}
    return render(request, "runs/sweep_new.html", context, status=400 if form.errors else 200)


def _quota(user: User) -> dict[str, int]:
    """How many runs this person has, and may have, at once."""
    used = Run.objects.filter(owner=user).without_servers().alive().count()
    limit = quotas.limit(user, "active_runs")
    return {"used": used, "limit": limit, "left": max(0, limit - used), "hour": quotas.limit(user, "runs_per_hour")}


@require_GET
@researchers
def sweep_list(request: HttpRequest) -> HttpResponse:
    """All sweeps, newest first."""
    sweeps = Sweep.objects.visible_to(current_user(request)).select_related("owner").order_by("-pk")[:200]
    return render(request, "runs/sweeps.html", {"sweeps": sweeps})


@require_GET
@researchers
def sweep(request: HttpRequest, sweep_id: int) -> HttpResponse:
    """The trials of a sweep, the best first; polled while one of them is active."""
    user = current_user(request)
    row = get_or_404(Sweep.objects.visible_to(user).select_related("owner"), pk=sweep_id)
    trials = results.rows(row)
    active = sum(trial.run.state in ALIVE for trial in trials)
    context = {
        "sweep": row,
        "rows": trials,
        "active": active,
        "resumable": sum(trial.run.state in {"stopped", "failed"} for trial in trials),
        "paths": [path for path, _ in row.fields],
        "metric": curves.title(row.metric),
        "change": user.may_change(row.owner_id),
        "compared": "&".join(f"run={trial.run.pk}" for trial in trials[:8]),
    }
    context |= results.charts_of(row, trials, curves.title(row.metric))
    if wants_fragment(request):
        return render_block(request, "runs/sweep.html", "trials", context, status=200 if active else STOP_ASKING)
    return render(request, "runs/sweep.html", context)


@require_POST
@researchers
def act(request: HttpRequest, sweep_id: int) -> HttpResponse:
    """Stop or resume all runs of a sweep (`action`)."""
    row = get_or_404(Sweep.objects.changeable_by(current_user(request)), pk=sweep_id)
    action = request.POST.get("action")
    if action == "stop":
        messages.success(request, f"{services.stop_all(sweep=row)} asked to stop.")
    elif action == "resume":
        accepted(request, lambda: messages.success(request, f"{services.resume_all(sweep=row)} queued again."))
    else:
        raise Http404
    return redirect("runs:sweep", row.pk)
