"""Measure a checkpoint with an evaluation suite."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.runs import services, suites
from webapp.runs.forms import SuiteForm
from webapp.runs.models import Checkpoint

FIELDS = {"games_per_run": "games", "speaker.source": "speaker", "judge.address": "judge", "judge.secret": "judge"}
"""The form's field where an error's place has another name."""


@require_http_methods(["GET", "POST"])
@researchers
def new(request: HttpRequest, checkpoint_id: int) -> HttpResponse:
    """Show the form, and start the run."""
    user = current_user(request)
    checkpoint = get_or_404(Checkpoint.objects.visible_to(user).select_related("run"), pk=checkpoint_id)
    form = SuiteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data
        try:
            names = ("games", "seed", "opponent", "partner", "speaker", "judge")
            config = suites.configuration(chosen["suite"], checkpoint, **{name: chosen[name] for name in names})
            run = services.create_run(owner=user, config=config, place=chosen["place"], start_checkpoint=checkpoint)
        except BadInput as error:
            field = FIELDS.get(error.where, error.where.rpartition(".")[2])
            form.add_error(field if field in form.fields else None, str(error))
        else:
            return redirect("runs:detail", run.pk)
    offered = [(about, suites.load(name)) for name, about in suites.SUITES.items()]
    context = {"checkpoint": checkpoint, "form": form, "offered": offered}
    return render(request, "runs/new_suite.html", context, status=400 if form.errors else 200)
