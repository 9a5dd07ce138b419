"""Checkpoints: list, detail with lineage and actions, download, and adding a base model."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import admins, current_user, get_or_404, members, researchers
from webapp.core import files
from webapp.core.http import accepted, integer, render_page
from webapp.core.sorting import Order
from webapp.runs import archive, presets, services, withdrawn
from webapp.runs.forms import BaseForm
from webapp.runs.models import Checkpoint
from webapp.runs.querysets import CHECKPOINT_SORTS
from webapp.runs.registry.models import AliasMove
from webapp.runs.registry.services import COMMON
from webapp.runs.summaries import curves, head_to_heads, lineage, suites

PAGE = 50
TITLES = {
    "name": "Name",
    "kind": "Kind",
    "base": "Base",
    "run": "Run",
    "step": "Step",
    "reward": "Reward",
    "head_to_head": "Head-to-head",
    "open": "Open to players",
    "age": "Saved",
}
FOR_PLAYERS = {"name", "kind", "base", "step", "open"}
"""The columns that players see of open checkpoints; the others are for researchers."""


@require_GET
@members
def checkpoint_list(request: HttpRequest) -> HttpResponse:
    """The checkpoints visible to this user, filtered by the query string."""
    user = current_user(request)
    visible = Checkpoint.objects.visible_to(user)
    titles = {name: title for name, title in TITLES.items() if user.is_researcher or name in FOR_PLAYERS}
    sorts = {name: field for name, field in CHECKPOINT_SORTS.items() if name in titles}
    default = "age" if "age" in sorts else "name"
    kind, base = request.GET.get("kind", ""), request.GET.get("base", "")[:200]
    words, order = request.GET.get("q", "")[:200], Order.requested(request, default)
    rows = order.apply(
        visible.matching(text=words, kind=kind, base=base).listed().prefetch_related("aliases"), sorts, default
    )
    page = Paginator(rows, PAGE).get_page(integer(request, "page", 1, low=1))
    context = {
        "page": page,
        "rows": [(row, head_to_heads.after_training(row)) for row in page],
        "kind": kind,
        "kinds": Checkpoint.Kind.choices,
        "base": base,
        "bases": visible.order_by("base").values_list("base", flat=True).distinct(),
        "words": words,
        "order": order,
        "columns": order.columns(titles, sorts, ("step", "reward", "head_to_head")),
    }
    return render_page(request, "runs/checkpoints.html", context, "results")


@require_GET
@members
def checkpoint(request: HttpRequest, checkpoint_id: int) -> HttpResponse:
    """A checkpoint's lineage, metrics and actions."""
    user = current_user(request)
    row = get_or_404(Checkpoint.objects.visible_to(user).listed().select_related("deployment"), pk=checkpoint_id)
    names = curves.in_order(row.metrics)
    metrics = [(curves.title(name), row.metrics[name], name in curves.TITLES) for name in names]
    context = {
        "checkpoint": row,
        "note": lineage.note(row.base),
        "metrics": [(title, value) for title, value, main in metrics if main],
        "more_metrics": [(title, value) for title, value, main in metrics if not main],
        "tree": lineage.tree(row) if user.is_researcher else [],
        "difference": head_to_heads.after_training(row) if user.is_researcher else None,
        "head_to_heads": head_to_heads.of_checkpoint(row) if user.is_researcher else [],
        "suites": suites.of_checkpoint(row) if user.is_researcher else [],
        "goes_on": _goes_on(row),
        "preset": _preset(row),
        "exploitable": presets.exploitable(row.run),
        "change": Checkpoint.objects.changeable_by(user).filter(pk=row.pk).exists(),
    }
    if user.is_researcher:
        aliases = list(row.aliases.all())
        moves = AliasMove.objects.filter(Q(name__in=[alias.name for alias in aliases]) | Q(before=row.name))
        context |= {"aliases": aliases, "common_aliases": COMMON, "alias_moves": moves.select_related("by")[:20]}
    return render(request, "runs/checkpoint.html", context)


def _goes_on(row: Checkpoint) -> str:
    """The query of a new run that continues a checkpoint's training: as its run did, after others by a preset."""
    if row.run is not None and row.run.kind == "train":
        return f"clone={row.run.pk}"
    return f"preset={_preset(row)}"


def _preset(row: Checkpoint) -> str:
    """The training preset of a checkpoint's game."""
    return presets.training_for(row.run.game if row.run is not None else "negotiation", row.base)


@require_GET
@researchers
def download(request: HttpRequest, checkpoint_id: int) -> HttpResponseBase:
    """The whole folder as a zip file."""
    row = get_or_404(Checkpoint.objects.visible_to(current_user(request)), pk=checkpoint_id)
    names = list(files.walk(row.path))
    if not names:
        raise Http404
    text = withdrawn.notice(row)
    return archive.zip_response(request, row.name, row.path, names, {"WITHDRAWN.md": text} if text else {})


@require_POST
@researchers
def share(request: HttpRequest, checkpoint_id: int) -> HttpResponse:
    """Open a checkpoint to players, or close it."""
    row = get_or_404(Checkpoint.objects.changeable_by(current_user(request)), pk=checkpoint_id)
    services.open_checkpoint(checkpoint=row, open_to_players=request.POST.get("open") == "1")
    return redirect("runs:checkpoint", row.pk)


@require_POST
@researchers
def delete(request: HttpRequest, checkpoint_id: int) -> HttpResponse:
    """Delete a checkpoint with its files."""
    row = get_or_404(Checkpoint.objects.changeable_by(current_user(request)), pk=checkpoint_id)
    if not accepted(request, partial(services.delete_checkpoint, checkpoint=row)):
        return redirect("runs:checkpoint", checkpoint_id)
    messages.success(request, f"{row.name} is deleted.")
    return redirect("runs:checkpoints")


@require_http_methods(["GET", "POST"])
@admins
def add_base(request: HttpRequest) -> HttpResponse:
    """Add a model folder, or a registered model, as a base model."""
    form = BaseForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            added = services.add_base(**data, model_roots=settings.MODEL_ROOTS)
        except BadInput as error:
            form.add_error("name" if error.where == "name" else "source", error.why)
        else:
            return redirect("runs:checkpoint", added.pk)
    status = 400 if form.errors else 200
    return render(request, "runs/add_base.html", {"form": form, "roots": settings.MODEL_ROOTS}, status=status)
