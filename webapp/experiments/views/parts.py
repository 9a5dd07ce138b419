"""Pages of researchers for the arms and the questions of a draft."""

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
from webapp.experiments.forms import ArmForm, QuestionForm, games
from webapp.experiments.models import Arm, Experiment, Question
from webapp.experiments.views.studies import visible

SMALLEST = 2


@require_http_methods(["GET", "POST"])
@researchers
def new_arm(request: HttpRequest, pk: int) -> HttpResponse:
    """A new arm. `?game=` and `?seats=` choose what its form is about."""
    return _arm(request, visible(request, pk), None)


@require_http_methods(["GET", "POST"])
@researchers
def edit_arm(request: HttpRequest, pk: int, arm_id: int) -> HttpResponse:
    """An arm of a draft."""
    experiment = visible(request, pk)
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
    arm = get_or_404(visible(request, pk).arms.all(), pk=arm_id)
    accepted(request, partial(design.drop, part=arm))
    return redirect("experiments:detail", pk)


@require_http_methods(["GET", "POST"])
@researchers
def new_question(request: HttpRequest, pk: int) -> HttpResponse:
    """A new question."""
    experiment = visible(request, pk)
    part = request.GET.get("part", "")
    chosen = part if part in Question.Part else Question.Part.BEFORE
    return _question(request, experiment, Question(experiment=experiment, part=chosen))


@require_http_methods(["GET", "POST"])
@researchers
def edit_question(request: HttpRequest, pk: int, question_id: int) -> HttpResponse:
    """A question of a draft."""
    experiment = visible(request, pk)
    return _question(request, experiment, get_or_404(experiment.questions.all(), pk=question_id))


def _question(request: HttpRequest, experiment: Experiment, question: Question) -> HttpResponse:
    form = QuestionForm(request.POST or None, instance=question)
    if request.method == "POST" and form.is_valid():
        try:
            design.save_question(question=form.save(commit=False))
        except BadInput as error:
            form.add_error(error.where if error.where in form.fields else None, error.why)
        else:
            return redirect("experiments:detail", experiment.pk)
    context = {"form": form, "experiment": experiment, "question": question}
    return render(request, "experiments/question.html", context, status=400 if form.errors else 200)


@require_POST
@researchers
def delete_question(request: HttpRequest, pk: int, question_id: int) -> HttpResponse:
    """Delete a question of a draft."""
    question = get_or_404(visible(request, pk).questions.all(), pk=question_id)
    accepted(request, partial(design.drop, part=question))
    return redirect("experiments:detail", pk)


@require_POST
@researchers
def move_question(request: HttpRequest, pk: int, question_id: int) -> HttpResponse:
    """Ask a question of a draft before the one that precedes it."""
    question = get_or_404(visible(request, pk).questions.all(), pk=question_id)
    accepted(request, partial(design.move_up, question=question))
    return redirect("experiments:detail", pk)
