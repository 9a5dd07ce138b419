"""Pages of researchers: their experiments, the design of each, its states, and the power calculation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.arena.setup import scenarios
from webapp.arena.setup.players import Players
from webapp.core.http import accepted, integer, render_page
from webapp.core.sorting import Order
from webapp.experiments import design, power
from webapp.experiments.forms import PLATFORM, STOPPING, TEXTS, ExperimentForm, PowerForm
from webapp.experiments.models import PERSON, SORTS, Arm, Experiment

PAGE = 30
TITLES = {"state": "State", "title": "Title", "owner": "Owner", "age": "Created"}


def visible_experiment(request: HttpRequest, pk: int) -> Experiment:
    """The experiment, if it is visible to this user; else 404."""
    return get_or_404(Experiment.objects.visible_to(current_user(request)).select_related("owner"), pk=pk)


@require_GET
@researchers
def experiment_list(request: HttpRequest) -> HttpResponse:
    """The experiments of the user (an administrator: all), filtered and sorted by the query string."""
    words, state, order = request.GET.get("q", "")[:200], request.GET.get("state", ""), Order.requested(request, "age")
    listed = Experiment.objects.visible_to(current_user(request)).counted()
    if words:
        listed = listed.filter(title__icontains=words)
    if state in Experiment.State:
        listed = listed.filter(state=state)
    page = Paginator(order.apply(listed, SORTS, "age"), PAGE).get_page(integer(request, "page", 1, 1))
    context = {
        "page": page,
        "words": words,
        "state": state,
        "states": Experiment.State.choices,
        "order": order,
        "columns": order.columns(TITLES, SORTS),
    }
    return render_page(request, "experiments/list.html", context, "results")


@require_http_methods(["GET", "POST"])
@researchers
def new(request: HttpRequest) -> HttpResponse:
    """A new draft."""
    return _edit(request, Experiment())


@require_http_methods(["GET", "POST"])
@researchers
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """The texts and numbers of a draft."""
    experiment = visible_experiment(request, pk)
    if not experiment.is_draft:
        messages.error(request, "The experiment has been opened, which fixed its design. Copy it to change something.")
        return redirect("experiments:detail", pk)
    return _edit(request, experiment)


def _edit(request: HttpRequest, experiment: Experiment) -> HttpResponse:
    form = ExperimentForm(request.POST or None, instance=experiment)
    if request.method == "POST" and form.is_valid():
        try:
            saved = design.save(experiment=form.save(commit=False), owner=current_user(request))
        except BadInput as error:
            form.add_error(None, error.why)
        else:
            return redirect("experiments:detail", saved.pk)
    sections = {"What participants read": TEXTS, "Stopping and assignment": STOPPING, "Codes and platform": PLATFORM}
    context = {
        "form": form,
        "experiment": experiment,
        "sections": [(title, [form[name] for name in names]) for title, names in sections.items()],
        "calculator": PowerForm(),
        "answer": _power(PowerForm({name: field.initial for name, field in PowerForm().fields.items()})),
    }
    return render(request, "experiments/edit.html", context, status=400 if form.errors else 200)


@require_GET
@researchers
def power_of(request: HttpRequest) -> HttpResponse:
    """The power calculation, as a part of the form's page or a page of its own."""
    form = PowerForm(request.GET or {name: field.initial for name, field in PowerForm().fields.items()})
    return render_page(request, "experiments/power.html", {"calculator": form, "answer": _power(form)}, "answer")


def _power(form: PowerForm) -> dict[str, object]:
    """How many participants a power takes, and the power of a number of participants; or why there is none."""
    if not form.is_valid():
        return {"problem": "Correct the marked numbers."}
    plan, n = form.plan(), form.cleaned_data["n"]
    try:
        return {
            "needed": power.participants(plan, form.cleaned_data["power"]),
            "n": n,
            "power": None if n is None else power.power(plan, n),
        }
    except BadInput as error:
        return {"problem": f"{error.why.capitalize()}."}


@require_GET
@researchers
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """The design of an experiment, its link and its state."""
    experiment = visible_experiment(request, pk)
    parts = [(part.capitalize(), experiment.questions.filter(part=part)) for part in ("before", "after")]
    context = {
        "experiment": experiment,
        "tab": "design",
        "arms": [(arm, describe_arm(arm)) for arm in experiment.arms.select_related("experiment__owner")],
        "parts": parts,
        "missing": design.missing(experiment) if experiment.is_draft else [],
        "warnings": design.warnings(experiment) if experiment.is_draft else [],
        "link": link(request, experiment),
    }
    return render(request, "experiments/detail.html", context)


def describe_arm(arm: Arm) -> dict[str, Any]:
    """What an arm's form calls its scenario, its players and its fallback; a choice that is gone by its value."""
    owner = arm.experiment.owner
    players = {PERSON: "A participant", "": "", **dict(Players(owner, arm.spec).choices())}
    names = dict(scenarios.choices(owner, arm.game, len(arm.players)))
    return {
        "scenario": names.get(arm.scenario, arm.scenario),
        "players": [players.get(player, player) for player in arm.players],
        "fallback": players.get(arm.fallback, arm.fallback),
    }


def link(request: HttpRequest, experiment: Experiment) -> str:
    """The address for participants."""
    return request.build_absolute_uri(reverse("experiments:participate", args=[experiment.token]))


def _act(request: HttpRequest, pk: int, work: Callable[..., object], done: str) -> HttpResponse:
    experiment = visible_experiment(request, pk)
    if accepted(request, partial(work, experiment=experiment)):
        messages.success(request, done)
    return redirect("experiments:detail", pk)


@require_POST
@researchers
def open_experiment(request: HttpRequest, pk: int) -> HttpResponse:
    """Open a draft."""
    return _act(request, pk, design.open_experiment, "The experiment is open: its link lets participants in.")


@require_POST
@researchers
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Pause an open experiment."""
    return _act(request, pk, design.pause, "Paused: nobody can begin, and no groups are formed. Games go on.")


@require_POST
@researchers
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume a paused experiment."""
    return _act(request, pk, design.resume, "The experiment is open again.")


@require_POST
@researchers
def close(request: HttpRequest, pk: int) -> HttpResponse:
    """Close an experiment."""
    return _act(request, pk, design.close, "Closed. Who was waiting got the code for waiting; games go on.")


@require_POST
@researchers
def copy(request: HttpRequest, pk: int) -> HttpResponse:
    """Copy the design into a new draft of the user."""
    experiment = visible_experiment(request, pk)
    try:
        made = design.copy(experiment=experiment, owner=current_user(request))
    except BadInput as error:
        messages.error(request, f"It was not copied: {error.why}.")
        return redirect("experiments:detail", pk)
    return redirect("experiments:detail", made.pk)


@require_POST
@researchers
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a draft."""
    experiment = visible_experiment(request, pk)
    if not accepted(request, partial(design.delete, experiment=experiment)):
        return redirect("experiments:detail", pk)
    messages.success(request, f"{experiment.title} was deleted.")
    return redirect("experiments:list")
