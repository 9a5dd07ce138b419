"""Pages of researchers for the arms of a draft."""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from training.errors import BadInput
from training.games import REGISTRY, lookup
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.arena.setup import scenarios
from webapp.core.http import accepted, integer
from webapp.experiments import design
from webapp.experiments.forms import ArmForm, games
from webapp.experiments.models import Arm, Experiment
from webapp.experiments.views.experiments import visible_experiment

SMALLEST = 2


@require_http_methods(["GET", "POST"])
@researchers
def new_arm(request: HttpRequest, pk: int) -> HttpResponse:
    """A new arm. `?game=` and `?seats=` choose what its form is about."""
    return _arm(request, visible_experiment(request, pk), None)


@require_http_methods(["GET", "POST"])
@researchers
def edit_arm(request: HttpRequest, pk: int, arm_id: int) -> HttpResponse:
    """An arm of a draft."""
    experiment = visible_experiment(request, pk)
    return _arm(request, experiment, get_or_404(experiment.arms.all(), pk=arm_id))


def _arm(request: HttpRequest, experiment: Experiment, arm: Arm | None) -> HttpResponse:
    user = current_user(request)
    game = request.GET.get("game") or (arm.game if arm else next(name for name, _ in games()))
    if game not in REGISTRY:
        raise Http404
    sizes = [size for size in scenarios.sizes(user, game) if size >= SMALLEST] or [lookup(game).players[0]]
    size = integer(request, "seats", len(arm.players) if arm and arm.game == game else sizes[0], 0, 99)
    size = size if size in sizes else sizes[0]
    same = arm if arm and arm.game == game and len(arm.players) == size else None
    form = ArmForm(request.POST or None, user=user, game=game, size=size, arm=same)
    if request.method == "POST" and form.is_valid():
        try:
            form.arm = arm
            design.save_arm(arm=form.filled(experiment))
        except BadInput as error:
            form.blame(error)
        else:
            return redirect("experiments:detail", experiment.pk)
    context = {"form": form, "experiment": experiment, "arm": arm, "spec": form.spec, "games": games(), "sizes": sizes}
    context["size"] = size
    return render(request, "experiments/arm.html", context, status=400 if form.errors or form.rules.errors else 200)


@require_POST
@researchers
def delete_arm(request: HttpRequest, pk: int, arm_id: int) -> HttpResponse:
    """Delete an arm of a draft."""
    arm = get_or_404(visible_experiment(request, pk).arms.all(), pk=arm_id)
    accepted(request, partial(design.drop, part=arm))
    return redirect("experiments:detail", pk)
