"""Tags, note and group of a run edited in place; pin and archive; the columns of the list."""

from __future__ import annotations

from functools import partial

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import accepted, render_page, wants_fragment
from webapp.runs.models import Run
from webapp.runs.organising import columns, services
from webapp.runs.organising.columns import ColumnChoices
from webapp.runs.preferences import services as preferences
from webapp.runs.views import tabs


class AboutForm(forms.Form):
    """What people say about a run."""

    tags = forms.CharField(
        required=False, max_length=1000, help_text="Words separated by commas; lists filter by them."
    )
    group = forms.CharField(
        required=False, max_length=services.GROUP_LENGTH, help_text="Runs that belong together, such as seeds."
    )
    note = forms.CharField(
        required=False,
        max_length=services.NOTE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Plain text: what was tried, and what came out.",
    )

    def clean_tags(self) -> list[str]:
        """The tags, each once."""
        try:
            return services.tags_of(self.cleaned_data["tags"])
        except BadInput as error:
            raise forms.ValidationError(error.why) from error

    def clean_group(self) -> str:
        """The name without double spaces."""
        return " ".join(self.cleaned_data["group"].split())


def _changeable(request: HttpRequest, run_id: int) -> Run:
    return get_or_404(Run.objects.changeable_by(current_user(request)).without_servers(), pk=run_id)


@require_http_methods(["GET", "POST"])
@researchers
def about(request: HttpRequest, run_id: int) -> HttpResponse:
    """Edit tags, group and note of a run in place; `?show=1` returns to what is stored."""
    run = _changeable(request, run_id)
    context = {"run": run, "may": {"change": True}}
    if "show" in request.GET and request.method == "GET":
        return render(request, "runs/about.html", context)
    initial = {"tags": ", ".join(run.tags), "group": run.group, "note": run.note}
    form = AboutForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        services.describe(run=run, **form.cleaned_data)
        return (
            render(request, "runs/about.html", context) if wants_fragment(request) else redirect("runs:detail", run_id)
        )
    status = 200 if request.method == "GET" or wants_fragment(request) else 400  # htmx shows no refused answers
    return render_page(request, "runs/about_edit.html", {**context, "form": form}, "form", status=status)


@require_POST
@researchers
def archive(request: HttpRequest, run_id: int) -> HttpResponse:
    """Hide a run from lists, or show it again (`archived=0`)."""
    run = _changeable(request, run_id)
    accepted(request, partial(services.archive, run=run, archived=request.POST.get("archived") != "0"))
    return tabs.back(request, run_id)


@require_POST
@researchers
def pin(request: HttpRequest, run_id: int) -> HttpResponse:
    """Keep a run at the top of this person's list, or no longer (`pinned=0`)."""
    user = current_user(request)
    run = get_or_404(Run.objects.visible_to(user).without_servers(), pk=run_id)
    services.pin(run=run, user=user, pinned=request.POST.get("pinned") != "0")
    return tabs.back(request, run_id)


@require_http_methods(["GET", "POST"])
@researchers
def choose(request: HttpRequest) -> HttpResponse:
    """The columns of this person's list: add, remove, move, reset."""
    user = current_user(request)
    shown = columns.of(user)
    if request.method == "POST":
        action, column = request.POST.get("action", ""), request.POST.get("column", "")
        if action == "reset":
            preferences.reset(user=user, kind=ColumnChoices)
        else:
            preferences.choose(user=user, choices=ColumnChoices(shown=tuple(_changed(shown, action, column))))
        return redirect("runs:columns")
    context = {
        "shown": [(name, columns.title(name)) for name in shown],
        "offered": columns.offered(user, shown),
        "full": len(shown) >= columns.MOST,
    }
    return render(request, "runs/columns.html", context)


def _changed(shown: list[str], action: str, column: str) -> list[str]:
    """The columns after one change; raises `Http404` for one that does not exist."""
    if not columns.valid(column):
        raise Http404
    if action == "add":
        return [*shown, column][: columns.MOST]
    if column not in shown:
        return shown
    at, others = shown.index(column), [name for name in shown if name != column]
    if action == "remove":
        return others
    if action in {"up", "down"}:
        others.insert(max(0, at - 1) if action == "up" else at + 1, column)
        return others
    raise Http404
