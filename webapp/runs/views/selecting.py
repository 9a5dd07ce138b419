"""The runs that a request selects by `run=ID`, repeated."""

from __future__ import annotations

from django.http import QueryDict

from webapp.runs.models import Run
from webapp.runs.querysets import RunQuerySet

MOST_COMPARED = 8
MOST_SUITES = 24
"""Several models, each with the suites of several seeds."""


def selected(runs: RunQuerySet, data: QueryDict) -> list[Run]:
    """The rows of `runs` that the data selects; at most 200, by id."""
    keys = [key for key in data.getlist("run") if key.isascii() and key.isdigit() and len(key) <= 18][:200]
    return list(runs.filter(pk__in=keys).order_by("pk"))
