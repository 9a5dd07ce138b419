"""Pages of researchers for the questions of a draft."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import get_or_404, researchers
from webapp.core.http import accepted
from webapp.experiments import design
from webapp.experiments.forms import QuestionForm
from webapp.experiments.models import Experiment, Question
from webapp.experiments.views.experiments import visible_experiment


@require_http_methods(["GET", "POST"])
@researchers
def new_question(request: HttpRequest, pk: int) -> HttpResponse:
    """A new question."""
    experiment = visible_experiment(request, pk)
    part = request.GET.get("part", "")
    chosen = part if part in Question.Part else Question.Part.BEFORE
    return _question(request, experiment, Question(experiment=experiment, part=chosen))


@require_http_methods(["GET", "POST"])
@researchers
def edit_question(request: HttpRequest, pk: int, question_id: int) -> HttpResponse:
    """A question of a draft."""
    experiment = visible_experiment(request, pk)
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
    question = get_or_404(visible_experiment(request, pk).questions.all(), pk=question_id)
    accepted(request, partial(design.drop, part=question))
    return redirect("experiments:detail", pk)


@require_POST
@researchers
def move_question(request: HttpRequest, pk: int, question_id: int) -> HttpResponse:
    """Ask a question of a draft before the one that precedes it."""
    question = get_or_404(visible_experiment(request, pk).questions.all(), pk=question_id)
    accepted(request, partial(design.move_up, question=question))
    return redirect("experiments:detail", pk)
