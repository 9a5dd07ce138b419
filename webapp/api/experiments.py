"""Experiments over the API: list, design with counts, results, export; researchers' own, administrators' all."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router
from ninja.pagination import LimitOffsetPagination, paginate

from webapp.accounts.permissions import get_or_404
from webapp.api.access import Key, caller
from webapp.api.shapes import ExperimentLineOut, ExperimentOut, ExperimentResultsOut
from webapp.core import csv_files, streaming
from webapp.experiments import export, results
from webapp.experiments.models import Experiment, ExperimentQuerySet

router = Router(tags=["experiments"], auth=Key(researchers=True))


def _experiment(request: HttpRequest, pk: int) -> Experiment:
    return get_or_404(Experiment.objects.visible_to(caller(request)).counted(), pk=pk)


@router.get("", response=list[ExperimentLineOut])
@paginate(LimitOffsetPagination)
def list_experiments(request: HttpRequest, q: str = "", state: str = "") -> ExperimentQuerySet:
    """Experiments whose title contains `q`, newest first."""
    rows = Experiment.objects.visible_to(caller(request)).counted().filter(title__icontains=q).order_by("-pk")
    return rows.filter(state=state) if state else rows


@router.get("/{int:pk}", response=ExperimentOut)
def get_experiment(request: HttpRequest, pk: int) -> Experiment:
    """The design of an experiment, and how many participants have begun and completed it."""
    return _experiment(request, pk)


@router.get("/{int:pk}/results", response=ExperimentResultsOut)
def get_results(request: HttpRequest, pk: int) -> dict[str, object]:
    """Each arm's means with 95 % intervals over groups, and the differences of the other arms from the first one."""
    return results.compute(_experiment(request, pk)).to_dict()


@router.get("/{int:pk}/export", response=str)
def export_experiment(request: HttpRequest, pk: int, form: Literal["jsonl", "csv"] = "jsonl") -> HttpResponseBase:
    """One row per participant who has not withdrawn, as JSON lines or CSV; ids of the platform are the owner's only."""
    experiment, user = _experiment(request, pk), caller(request)
    if form == "csv":
        rows = export.table(experiment, user)
        return csv_files.response(request, f"experiment-{experiment.pk}", export.columns(experiment), rows)
    pieces = streaming.lines(export.json_lines(experiment, user))
    return streaming.stream(request, pieces, "application/jsonl; charset=utf-8")
