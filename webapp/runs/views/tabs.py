"""The tabs of a run's page: the address of each, to which the buttons above them return."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from webapp.runs.models import Run


def address(request: HttpRequest, run: Run, tab: str) -> str:
    """The address of the tab that a request shows; that of the run's page opens other tabs in other states."""
    if request.resolver_match is None or request.resolver_match.url_name != "detail":
        return request.get_full_path()
    page = reverse("runs:detail", args=[run.pk])
    return f"{page}?tab=curves" if tab == "curves" else reverse(f"runs:{tab}", args=[run.pk])


def back(request: HttpRequest, run_id: int) -> HttpResponse:
    """Return to the tab on which a button was pressed, by its field `back`; to the run's page if that names another."""
    page = reverse("runs:detail", args=[run_id])
    tab = request.POST.get("back", "")
    return redirect(tab if tab.startswith(page) else page)
