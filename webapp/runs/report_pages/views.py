"""Report pages: all of them, one, its editor with a preview."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import accepted
from webapp.runs.report_pages import offers, services
from webapp.runs.report_pages.models import Report
from webapp.runs.report_pages.rendering import render as rendered

LISTED = 200


class ReportForm(forms.Form):
    """Title and text."""

    title = forms.CharField(max_length=120)
    text = forms.CharField(
        required=False,
        strip=False,
        max_length=services.LONGEST,
        widget=forms.Textarea(attrs={"rows": 18, "class": "mono"}),
    )


@require_GET
@researchers
def report_list(request: HttpRequest) -> HttpResponse:
    """All reports, the latest change first."""
    reports = Report.objects.visible_to(current_user(request)).select_related("owner").defer("text")
    return render(request, "runs/reports.html", {"reports": reports.order_by("-updated_at")[:LISTED]})


@require_GET
@researchers
def report(request: HttpRequest, report_id: int) -> HttpResponse:
    """One report."""
    user = current_user(request)
    row = get_or_404(Report.objects.visible_to(user).select_related("owner"), pk=report_id)
    page = rendered(row.text, services.pinned(row), user)
    context = {"report": row, "page": page, "change": user.may_change(row.owner_id)}
    return render(request, "runs/report.html", context)


@require_http_methods(["GET", "POST"])
@researchers
def new(request: HttpRequest) -> HttpResponse:
    """Write a report."""
    return _edit(request, Report(owner=current_user(request)))


@require_http_methods(["GET", "POST"])
@researchers
def edit(request: HttpRequest, report_id: int) -> HttpResponse:
    """Change a report."""
    return _edit(request, get_or_404(Report.objects.changeable_by(current_user(request)), pk=report_id))


def _edit(request: HttpRequest, row: Report) -> HttpResponse:
    form = ReportForm(request.POST or None, initial={"title": row.title, "text": row.text})
    if request.method == "POST" and form.is_valid():
        try:
            services.write(report=row, by=current_user(request), **form.cleaned_data)
        except BadInput as error:
            form.add_error("text", error.why)
        else:
            return redirect("runs:report", row.pk)
    offered = offers.offers(current_user(request))
    form.fields["text"].help_text = offers.syntax(offered)
    context = {"form": form, "report": row, "offers": offered}
    return render(request, "runs/report_edit.html", context, status=400 if form.errors else 200)


@require_POST
@researchers
def preview(request: HttpRequest) -> HttpResponse:
    """The text as it would be shown; `report` is the id of the one whose pinned numbers stay."""
    user, text, key = current_user(request), request.POST.get("text", ""), request.POST.get("report", "")
    row = Report.objects.changeable_by(user).filter(pk=int(key)).first() if key.isdecimal() and len(key) < 19 else None
    try:
        page = rendered(text, services.provenances(text, user, services.pinned(row) if row else {}), user)
    except BadInput as error:
        return render(request, "runs/report_body.html", {"problem": error.why})
    return render(request, "runs/report_body.html", {"page": page})


@require_POST
@researchers
def act(request: HttpRequest, report_id: int) -> HttpResponse:
    """Delete a report (`action=delete`), or read all its numbers again."""
    user = current_user(request)
    row = get_or_404(Report.objects.changeable_by(user), pk=report_id)
    if request.POST.get("action") == "delete":
        services.delete(report=row)
        messages.success(request, f"{row} is deleted.")
        return redirect("runs:reports")

    def again() -> None:
        messages.success(request, f"Pinned anew: {services.pin_anew(report=row, by=user)} numbers have changed.")

    accepted(request, again)
    return redirect("runs:report", row.pk)
