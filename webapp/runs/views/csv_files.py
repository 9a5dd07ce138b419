"""What pages show, as CSV files: curves with this person's charts, and a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from webapp.accounts.permissions import current_user, researchers
from webapp.core.csv_files import response
from webapp.runs.models import Run
from webapp.runs.organising import columns
from webapp.runs.preferences.services import ChartChoices
from webapp.runs.summaries import comparing
from webapp.runs.summaries import curves as summaries
from webapp.runs.summaries.chart_page import Smoothing
from webapp.runs.summaries.head_to_heads import Difference
from webapp.runs.views import lists
from webapp.runs.views.selecting import MOST_SUITES, selected

MOST_ROWS = 20_000
"""Runs of one file."""


def _runs(request: HttpRequest) -> list[Run]:
    return selected(Run.objects.visible_to(current_user(request)).without_servers(), request.GET)[:MOST_SUITES]


def _none(request: HttpRequest) -> HttpResponseBase:
    messages.error(request, "Select the runs whose numbers the file shall have.")
    return redirect("runs:list")


@require_GET
@researchers
def curves(request: HttpRequest) -> HttpResponseBase:
    """Every step of `?run=` (several), with the metrics that this person's charts show; smoothed ones beside them."""
    runs, choices = _runs(request), ChartChoices.of(current_user(request))
    if not runs:
        return _none(request)
    present = {name for values in comparing.last_metrics(runs).values() for name in values}
    names = [name for name in summaries.in_order(present) if name not in choices.hidden]
    smoothed = [f"{name} (smoothed {choices.smoothing:g})" for name in names] if choices.smoothing else []
    head = ["run", "name", "step", *names, *smoothed]
    rows = (row for run in runs for row in _steps(run, names, choices.smoothing))
    return response(request, f"{runs[0].name} curves" if len(runs) == 1 else "curves", head, rows)


def _steps(run: Run, names: Sequence[str], weight: float) -> Iterator[list[object]]:
    averages = [Smoothing(weight) for _ in names]
    for step, _, values in run.metrics.every():
        row = [values.get(name) for name in names]
        means = [average.add(value) for average, value in zip(averages, row, strict=True)] if weight else []
        yield [run.pk, run.name, step, *row, *means]


@require_GET
@researchers
def comparison(request: HttpRequest) -> HttpResponseBase:
    """The comparison of `?run=` (several): the fields in which the configurations differ, then the last metrics."""
    runs = _runs(request)
    if not runs:
        return _none(request)
    report = comparing.comparison(runs, current_user(request))
    head = ["kind", "name", *(f"{run.name} #{run.pk}" for run in runs)]
    differences = [["configuration", path, *values] for path, values in report["differences"]]
    metrics = [["last value", title, *values] for _, title, values in report["metrics"]]
    return response(request, "comparison", head, [*differences, *metrics])


@require_GET
@researchers
def run_list(request: HttpRequest) -> HttpResponseBase:
    """Every run that the list's query string asks for, with this person's columns; times in UTC."""
    shown = columns.of(current_user(request))
    runs = list(lists.in_order(request, shown)[:MOST_ROWS])
    rows = ([run.pk, *(_plain(value) for _, value in cells)] for run, cells in columns.values(runs, shown))
    return response(request, "runs", ["id", *(columns.title(name) for name in shown)], rows)


def _plain(value: object) -> object:
    """The text of a cell: times as ISO 8601, values of a trend without their stride, a head-to-head's mean."""
    if isinstance(value, Difference):
        return value.mean
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return " ".join(f"{number:g}" for number in value[1:]) if isinstance(value, list) else value
