"""The page of a run to which the buttons above its tabs return."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import Resolver404, resolve


def back(request: HttpRequest, run_id: int) -> HttpResponse:
    """Return to the page of the run on which a button was pressed, by the browser's Referer; without one to its first
    tab, which depends on the run's state.
    """
    try:
        page = urlsplit(request.headers.get("referer", ""))._replace(scheme="", netloc="")
        of_run = resolve(page.path).kwargs.get("run_id") == run_id
    except (ValueError, Resolver404):
        of_run = False
    return redirect(page.geturl()) if of_run else redirect("runs:detail", run_id)
