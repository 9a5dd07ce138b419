"""The page of deployments: their states, start, stop, and remote models."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import admins, current_user, get_or_404, researchers
from webapp.core.http import integer, render_page
from webapp.core.sorting import Order
from webapp.runs.models import Checkpoint
from webapp.runs.registry import services as registry
from webapp.runs.registry.models import Alias
from webapp.serving import services
from webapp.serving.forms import RemoteForm
from webapp.serving.models import SORTS, Deployment, RemoteModel

PAGE = 50
LATEST = 20


def _may_stop(user: User, deployment: Deployment) -> bool:
    """Return whether this person may stop it: the owner of its run and admins; for base models admins only."""
    run = deployment.checkpoint.run if deployment.checkpoint is not None else None
    return user.is_admin or (run is not None and user.may_change(run.owner_id))


def _context(request: HttpRequest, form: RemoteForm | None = None) -> dict[str, Any]:
    user = current_user(request)
    words, state, order = request.GET.get("q", "")[:200], request.GET.get("state", ""), Order.requested(request, "used")
    visible = Deployment.objects.visible_to(user)
    deployments = visible.matching(text=words, state=state).named().select_related("checkpoint__run").with_withdrawn()
    page = Paginator(order.apply(deployments, SORTS, "used"), PAGE).get_page(integer(request, "page", 1, low=1))
    aliases = Alias.objects.filter(checkpoint__in=Checkpoint.objects.visible_to(user)).select_related("checkpoint")
    others = Checkpoint.objects.filter(deployment=None).order_by("-created_at")[:LATEST]
    return {
        "page": page,
        "rows": [(deployment, _may_stop(user, deployment)) for deployment in page],
        "words": words,
        "state": state,
        "states": Deployment.State.choices,
        "order": order,
        "columns": order.columns({"name": "Model", "where": "Where", "state": "State", "used": "Last used"}, SORTS),
        "others": others,
        "aliases": aliases,
        "form": form or RemoteForm(),
    }


@require_GET
@researchers
def deployments(request: HttpRequest) -> HttpResponse:
    """The deployments, filtered by the query string; the list reloads every few seconds."""
    return render_page(request, "serving/list.html", _context(request), block="rows")


@require_POST
@researchers
def serve(request: HttpRequest, checkpoint_id: int) -> HttpResponse:
    """Request that a checkpoint be served; it starts as soon as a slot is free.

    With `alias`, the checkpoint that has it by now, which may be another one than the page showed.
    """
    reference = request.POST.get("alias") or str(checkpoint_id)
    checkpoint = registry.find(reference, among=Checkpoint.objects.visible_to(current_user(request)))
    if checkpoint is None:
        raise Http404
    deployment = services.of_checkpoint(checkpoint)
    try:
        services.request(deployment=deployment, by=current_user(request))
    except BadInput as error:
        messages.error(request, f"{deployment} was not requested: {error.why}.")
    return redirect("serving:list")


@require_POST
@researchers
def stop(request: HttpRequest, deployment_id: int) -> HttpResponse:
    """Stop a served model."""
    user = current_user(request)
    deployment = get_or_404(Deployment.objects.select_related("checkpoint__run"), pk=deployment_id)
    if not _may_stop(user, deployment):
        raise Http404
    services.stop(deployment=deployment)
    return redirect("serving:list")


@require_POST
@admins
def add_remote(request: HttpRequest) -> HttpResponse:
    """Register a model at an allowed address."""
    form = RemoteForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        try:
            services.add_remote(
                by=current_user(request),
                name=data["name"],
                address=data["address"],
                model=data["model"],
                secret_name=data["secret"],
                open_to_players=data["open_to_players"],
            )
        except BadInput as error:
            form.add_error(error.where if error.where in form.fields else "address", error.why)
        else:
            messages.success(request, f"{data['name']} can be chosen at new tables from now on.")
            return redirect("serving:list")
    return render(request, "serving/list.html", _context(request, form), status=400)


@require_POST
@admins
def remove_remote(request: HttpRequest, remote_id: int) -> HttpResponse:
    """Delete a remote model that nothing refers to."""
    remote = get_or_404(RemoteModel.objects.all(), pk=remote_id)
    try:
        services.remove_remote(remote=remote)
    except BadInput as error:
        messages.error(request, f"{remote.name} was not removed: {error.why}.")
    return redirect("serving:list")
